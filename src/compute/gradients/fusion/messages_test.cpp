// Tests the encoding of the messages of a negotiation against docs/formats/negotiation.md.
#include "gradients/fusion/messages.hpp"

#include <gtest/gtest.h>

namespace trainyard::gradients {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char each : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[uint8_t(each) >> 4];
    text += digits[uint8_t(each) & 15];
  }
  return text;
}

Signature signature() {
  Signature signature;
  signature.name = "w";
  signature.operation = Operation::all_to_all;
  signature.type = collectives::Type::bf16;
  signature.reduction = collectives::Reduction::average;
  signature.prescale = 0.5;
  signature.postscale = 2;
  signature.root = 3;
  signature.compression = {Compression::Kind::low_rank, 7};
  signature.priority = -1;
  signature.set = 2;
  signature.group = "g";
  signature.group_members = 9;
  signature.shape = {4, 5};
  signature.splits = {1};
  return signature;
}

constexpr std::string_view kSignatureBytes =
    "0100000077"                                // name
    "050301"                                    // operation, type, reduction
    "000000000000e03f0000000000000040"          // prescale, postscale
    "03000000"                                  // root
    "0407000000"                                // compression
    "ffffffff02000000"                          // priority, set
    "010000006709000000"                        // group
    "0200000004000000000000000500000000000000"  // shape
    "010000000100000000000000";                 // splits

TEST(Messages, ReportsHaveTheDocumentedBytes) {
  const Report report{true, {signature()}, {{"2/w", 258}}};
  const std::string bytes = encode(report);
  EXPECT_EQ(hex(bytes),
            "54594631"
            "01"
            "01000000" +
                std::string(kSignatureBytes) +
                "01000000"
                "03000000322f77"
                "0201000000000000");
  EXPECT_EQ(*decode_report(bytes), report);
}

TEST(Messages, AnswersHaveTheDocumentedBytes) {
  const Answer answer{
      {{signature(), {6}, true, -1, "no", true}}, {"0/a"}, {1}, Settings{1 << 20, 500}, "s"};
  const std::string bytes = encode(answer);
  EXPECT_EQ(hex(bytes),
            "54594632"
            "01000000" +
                std::string(kSignatureBytes) +
                "010000000600000000000000"
                "01"
                "ffffffff"
                "020000006e6f"
                "01"
                "01000000"
                "03000000302f61"
                "0100000001000000"
                "01"
                "0000100000000000"
                "f4010000"
                "0100000073");
  EXPECT_EQ(*decode_answer(bytes), answer);
}

TEST(Messages, TruncatedAndTooLongMessagesAreCorrupt) {
  const std::string report = encode(Report{false, {signature()}, {{"2/w", 258}}});
  for (size_t size = 0; size < report.size(); ++size) {
    const auto decoded = decode_report(report.substr(0, size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().kind, Kind::corrupt);
  }
  EXPECT_FALSE(decode_report(report + "x"));
  EXPECT_FALSE(decode_answer(report));
}

}  // namespace
}  // namespace trainyard::gradients

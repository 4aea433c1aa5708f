#include "base/bytes/fields.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

enum class Colour : uint8_t { red, green };
struct Mixed {
  uint8_t small = 0;
  int32_t signed_number = 0;
  uint64_t large = 0;
  bool flag = false;
  double real = 0;
  std::string text;
  Colour colour = Colour::red;
  std::optional<uint32_t> maybe;
  std::vector<std::string> words;
};
struct Empty {};
using Message = std::variant<Empty, Mixed>;

constexpr auto kDescribe = []<class Side, class M>(Side& side, M& m) {
  if constexpr (std::is_same_v<std::remove_const_t<M>, Mixed>) {
    side("small", m.small);
    side("signed_number", m.signed_number);
    side("large", m.large);
    side("flag", m.flag);
    side("real", m.real);
    side("text", m.text);
    side.choice("colour", m.colour, Colour::green);
    side.optional("maybe", m.maybe, [&](auto& value) { side("maybe", value); });
    side.list("words", m.words, 4, [&](auto& word) { side("words", word); });
  }
};
constexpr const char* kNames[] = {"Empty", "Mixed"};

const Mixed kMixed{7, -2, uint64_t{1} << 40, true, 0.5, "text", Colour::green, 9, {"a", "", "bc"}};

std::string fault_of(std::string_view payload) {
  const auto message = decode_kind<Message>(payload, kNames, kDescribe);
  return message ? "" : message.error().message;
}

TEST(Fields, DecodeToTheEncodedValues) {
  const std::string bytes = encode_kind(Message(kMixed), kDescribe);
  const auto message = decode_kind<Message>(bytes, kNames, kDescribe);
  ASSERT_TRUE(message);
  const auto& read = std::get<Mixed>(*message);
  EXPECT_EQ(read.small, 7);
  EXPECT_EQ(read.signed_number, -2);
  EXPECT_EQ(read.large, uint64_t{1} << 40);
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.real, 0.5);
  EXPECT_EQ(read.text, "text");
  EXPECT_EQ(read.colour, Colour::green);
  EXPECT_EQ(read.maybe, 9);
  EXPECT_EQ(read.words, kMixed.words);
  EXPECT_EQ(encode_kind(*message, kDescribe), bytes);
}

TEST(Fields, ErrorsNameTruncatedAndTooLongMessages) {
  const std::string bytes = encode_kind(Message(kMixed), kDescribe);
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_TRUE(fault_of(bytes.substr(0, size)).ends_with(" is cut short")) << size;
  EXPECT_EQ(fault_of(bytes + "xy"), "Mixed has 2 bytes too many");
  EXPECT_EQ(fault_of(""), "a frame without a message kind");
}

TEST(Fields, ErrorsNameFieldsWithInvalidValues) {
  EXPECT_EQ(fault_of(std::string(1, '\0')), "unknown message kind 0");
  EXPECT_EQ(fault_of("\x03"), "unknown message kind 3");
  std::string bytes = encode_kind(Message(Mixed{}), kDescribe);
  constexpr size_t kFlag = 1 + 1 + 4 + 8, kColour = kFlag + 1 + 8 + 4, kWords = kColour + 2;
  std::string flag = bytes, colour = bytes, words = bytes;
  flag[kFlag] = 2;
  EXPECT_EQ(fault_of(flag), "Mixed.flag is neither 0 nor 1");
  colour[kColour] = 2;
  EXPECT_EQ(fault_of(colour), "Mixed.colour has no value 2");
  words[kWords + 3] = '\x7f';  // a count of about two billion words, without their bytes
  EXPECT_EQ(fault_of(words), "Mixed.words is cut short");
}

}  // namespace
}  // namespace trainyard

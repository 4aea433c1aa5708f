#include "contract/container_init.hpp"

#include <gtest/gtest.h>

namespace trainyard::contract {
namespace {

// An init may belong to an earlier release, which started it, so the bytes must not change.
TEST(ContainerInit, EncodesTheDocumentedFormat) {
  EXPECT_EQ(encode(InitOrder(RunChild{{"sh", "-c"}, {{"A", "1"}}, "/tmp"})),
            R"({"run":{"arguments":["sh","-c"],"environment":{"A":"1"},)"
            R"("working_directory":"/tmp"}})");
  EXPECT_EQ(encode(InitOrder(SignalChild{9, true})), R"({"all":true,"signal":9})");
  EXPECT_EQ(encode(InitOrder(Clear{})), R"({"clear":true})");
  EXPECT_EQ(encode(InitReport(Ended{137})), R"({"ended":137})");
}

TEST(ContainerInit, DecodesEncodedOrders) {
  const auto run = decode_init_order(
      encode(InitOrder(RunChild{{"sh", "-c", "\xc3\xa9"}, {{"A", "1"}}, "/tmp"})));
  ASSERT_TRUE(run);
  const auto& child = std::get<RunChild>(*run);
  EXPECT_EQ(child.arguments, (std::vector<std::string>{"sh", "-c", "\xc3\xa9"}));
  EXPECT_EQ(child.environment.at("A"), "1");
  EXPECT_EQ(child.working_directory, "/tmp");
  const auto signal = decode_init_order(encode(InitOrder(SignalChild{9, true})));
  ASSERT_TRUE(signal);
  EXPECT_TRUE(std::get<SignalChild>(*signal).all);
  EXPECT_TRUE(std::holds_alternative<Clear>(*decode_init_order(encode(InitOrder(Clear{})))));
}

TEST(ContainerInit, DecodesEncodedReports) {
  EXPECT_TRUE(std::holds_alternative<Started>(*decode_init_report(encode(InitReport(Started{})))));
  EXPECT_TRUE(std::holds_alternative<Cleared>(*decode_init_report(encode(InitReport(Cleared{})))));
  EXPECT_EQ(std::get<Ended>(*decode_init_report(encode(InitReport(Ended{137})))).code, 137);
  const auto refused = decode_init_report(encode(InitReport(NotStarted{std::string(5000, 'x')})));
  EXPECT_EQ(std::get<NotStarted>(*refused).reason.size(), kInitReasonBytesMax);
}

TEST(ContainerInit, RejectsOtherMessages) {
  for (const char* wrong : {"", "1", "{}", "[]", R"({"ended":-1})", R"({"ended":256})",
                            R"({"ended":"0"})", R"({"not_started":1})"})
    EXPECT_FALSE(decode_init_report(wrong)) << wrong;
  for (const char* wrong :
       {"", "1", "{}", R"({"run":{}})", R"({"signal":"x","all":true})", R"({"signal":1})",
        R"({"run":{"arguments":[],"environment":{},"working_directory":"/"}})"})
    EXPECT_FALSE(decode_init_order(wrong)) << wrong;
}

TEST(ContainerInit, AcceptsOnlySignalsOfLinux) {
  const auto read = [](const std::string& number) {
    return decode_init_order(R"({"signal":)" + number + R"(,"all":true})");
  };
  for (const char* number : {"1", "9", "64"}) EXPECT_TRUE(read(number)) << number;
  // The last number would be 9 in 32 bits.
  for (const char* number : {"0", "-1", "65", "2147483648", "4294967296", "9223372036854775807",
                             "18446744073709551615", "4294967305"})
    EXPECT_FALSE(read(number)) << number;
}

}  // namespace
}  // namespace trainyard::contract

#include "dispatch/shell.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::api {
namespace {

std::string query(const std::string& request) {
  return "job=mnist&host=1&request=" + percent_encode(request);
}

TEST(ReadShellRequest, ReadsCommandAndTerminal) {
  const auto order = read_shell_request(query(
      R"({"command":["ls","-l a"],"terminal":false,"terminal_name":"xterm-256color","columns":120,"rows":40})"));
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->job.name, "mnist");
  EXPECT_EQ(order->host, 1u);
  EXPECT_EQ(order->command, (std::vector<std::string>{"ls", "-l a"}));
  EXPECT_FALSE(order->terminal);
  EXPECT_EQ(order->terminal_name, "xterm-256color");
  EXPECT_EQ(order->columns, 120u);
  EXPECT_EQ(order->rows, 40u);
  EXPECT_TRUE(read_shell_request("job=a")->command.empty());
  EXPECT_TRUE(read_shell_request("job=a")->terminal);
}

TEST(ReadShellRequest, RejectsInvalidRequests) {
  std::string long_command = R"({"command":[")" + std::string(40'000, 'x') + "\"]}";
  for (const std::string& wrong :
       {std::string(""), std::string("host=1"), std::string("job=a&host=x"),
        std::string("job=a&host=-1"), std::string("job=%zz"), query("[]"), query("{"),
        query(R"({"columns":0})"), query(R"({"rows":20000})"), query(R"({"rows":"x"})"),
        query(R"({"command":[1]})"), query(R"({"command":["a\u0000b"]})"),
        query(R"({"terminal":1})"), query(R"({"terminal_name":"a b"})"), query(long_command)}) {
    const auto order = read_shell_request(wrong);
    ASSERT_FALSE(order) << wrong.substr(0, 100);
    EXPECT_EQ(order.error().kind, Kind::invalid);
  }
}

}  // namespace
}  // namespace trainyard::api

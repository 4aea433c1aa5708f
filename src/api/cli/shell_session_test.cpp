#include "cli/shell_session.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

using wire::encode_shell;

TEST(ShellSession, SendsKeysAndReturnsOutput) {
  ShellSession session(true);
  session.type("ls\r");
  EXPECT_EQ(session.send(), encode_shell(wire::ShellInput{"ls\r"}));
  EXPECT_EQ(*session.receive(encode_shell(wire::ShellOutput{"a b"})), "a b");
  EXPECT_EQ(session.send(), encode_shell(wire::ShellCredit{3}));
  session.resize(100, 30);
  EXPECT_EQ(session.send(), encode_shell(wire::ShellResize{100, 30}));
  session.resize(0, 0);
  EXPECT_EQ(session.send(), "");
  EXPECT_EQ(*session.receive(encode_shell(wire::ShellEnded{2, ""})), "");
  EXPECT_EQ(session.ended()->exit_code, 2);
}

TEST(ShellSession, QueuesKeysUntilTheWindowOpens) {
  ShellSession session(false);
  session.type(std::string(wire::kShellWindowBytes + 10, 'x'));
  EXPECT_FALSE(session.window_open());
  session.input_ends();
  size_t input = 0, ends = 0;
  const auto count = [&](const std::string& bytes) {
    wire::ShellDecoder decoder;
    decoder.feed(bytes);
    for (auto frame = decoder.next(); frame && *frame; frame = decoder.next()) {
      if (const auto* more = std::get_if<wire::ShellInput>(&**frame)) input += more->bytes.size();
      ends += std::holds_alternative<wire::ShellInputEnds>(**frame);
    }
  };
  count(session.send());
  EXPECT_EQ(input, wire::kShellWindowBytes);
  EXPECT_EQ(ends, 0u);
  ASSERT_TRUE(session.receive(encode_shell(wire::ShellCredit{1000})));
  count(session.send());
  EXPECT_EQ(input, wire::kShellWindowBytes + 10);
  EXPECT_EQ(ends, 1u);
  count(session.send());
  EXPECT_EQ(ends, 1u);
}

TEST(ShellSession, LeavesAfterATildeAndADot) {
  struct Row {
    const char* keys;
    bool left;
    const char* sent;
  };
  const Row rows[] = {{"~.", true, ""},     {"ls\r~.", true, "ls\r"}, {"a~.", false, "a~."},
                      {"~~.", false, "~."}, {"~x", false, "~x"},      {"\r~~\r~.", true, "\r~\r"}};
  for (const Row& row : rows) {
    ShellSession session(true);
    for (const char* key = row.keys; *key != '\0'; ++key) session.type({key, 1});
    EXPECT_EQ(session.left(), row.left) << row.keys;
    const std::string sent = session.send();
    EXPECT_EQ(sent, *row.sent == '\0' ? "" : encode_shell(wire::ShellInput{row.sent})) << row.keys;
  }
  ShellSession bytes(false);
  bytes.type("~.");
  EXPECT_FALSE(bytes.left());
}

TEST(ShellSession, RejectsFramesThatOnlyClientsSend) {
  ShellSession session(true);
  EXPECT_EQ(session.receive(encode_shell(wire::ShellInput{"x"})).error().kind, Kind::corrupt);
}

}  // namespace
}  // namespace trainyard::cli

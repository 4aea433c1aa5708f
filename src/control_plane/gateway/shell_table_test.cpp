#include "gateway/shell_table.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"

namespace trainyard::gateway {
namespace {

// A table with one link, which records everything that is sent to the agent.
struct Fixture {
  TestClock clock;
  bool linked = true;
  std::vector<wire::Message> down;
  ShellTable table{[this](uint64_t, const wire::Message& message) {
                     if (linked) down.push_back(message);
                     return linked;
                   },
                   clock};

  std::unique_ptr<Shell> open(uint64_t link = 7) {
    auto shell = table.open(link, {.job = {"us-east-1", "mnist"}, .host = 1, .command = {"ls"}});
    return shell ? std::move(*shell) : nullptr;
  }
  uint64_t number() const { return std::get<wire::OpenShell>(down.front()).shell; }
  Result<void> up(const wire::ShellFrame& frame, uint64_t link = 7) {
    return table.from_agent(link, {number(), wire::encode_shell_payload(frame)});
  }
  wire::ShellFrame last_down() const {
    return *wire::decode_shell_payload(std::get<wire::ShellData>(down.back()).payload);
  }
};

TEST(ShellTable, CarriesFramesBothWaysUntilTheEnd) {
  Fixture fixture;
  const auto shell = fixture.open();
  ASSERT_TRUE(shell);
  EXPECT_EQ(std::get<wire::OpenShell>(fixture.down.front()).command,
            std::vector<std::string>{"ls"});
  ASSERT_TRUE(shell->take(wire::encode_shell(wire::ShellInput{"keys"})));
  EXPECT_EQ(std::get<wire::ShellInput>(fixture.last_down()).bytes, "keys");
  ASSERT_TRUE(fixture.up(wire::ShellOutput{"shown"}));
  EXPECT_EQ(shell->give(), wire::encode_shell(wire::ShellOutput{"shown"}));
  ASSERT_TRUE(fixture.up(wire::ShellEnded{3, ""}));
  EXPECT_FALSE(shell->over());
  EXPECT_EQ(shell->give(), wire::encode_shell(wire::ShellEnded{3, ""}));
  EXPECT_TRUE(shell->over());
}

TEST(ShellTable, RejectsClientsThatSendMoreThanTheWindow) {
  Fixture fixture;
  const auto shell = fixture.open();
  const std::string frame =
      wire::encode_shell(wire::ShellInput{std::string(wire::kShellBytesMax, 'x')});
  size_t sent = 0;
  while (sent + wire::kShellBytesMax <= wire::kShellWindowBytes) {
    ASSERT_TRUE(shell->take(frame));
    sent += wire::kShellBytesMax;
  }
  EXPECT_EQ(shell->take(frame).error().kind, Kind::denied);
}

TEST(ShellTable, RejectsAgentsThatSendMoreThanTheWindow) {
  Fixture fixture;
  const auto shell = fixture.open();
  const wire::ShellOutput output{std::string(wire::kShellBytesMax, 'x')};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(fixture.up(output));
  EXPECT_EQ(fixture.up(output).error().kind, Kind::corrupt);
  ASSERT_TRUE(shell->take(wire::encode_shell(wire::ShellCredit{wire::kShellBytesMax})));
  EXPECT_TRUE(fixture.up(output));
}

TEST(ShellTable, RejectsFramesOfTheOtherDirection) {
  Fixture fixture;
  const auto shell = fixture.open();
  EXPECT_EQ(fixture.up(wire::ShellInput{"x"}).error().kind, Kind::corrupt);
  EXPECT_EQ(shell->take(wire::encode_shell(wire::ShellOutput{"x"})).error().kind, Kind::corrupt);
  EXPECT_EQ(shell->take(wire::encode_shell(wire::ShellCredit{1})).error().kind, Kind::corrupt);
}

TEST(ShellTable, IgnoresFramesOfOtherHostsLinks) {
  Fixture fixture;
  const auto shell = fixture.open(7);
  EXPECT_TRUE(fixture.up(wire::ShellOutput{"x"}, 8));
  EXPECT_EQ(shell->give(), "");
}

TEST(ShellTable, EndsWithItsLink) {
  Fixture fixture;
  const auto shell = fixture.open();
  fixture.table.link_closed(7);
  EXPECT_NE(shell->give().find("the host has ended"), std::string::npos);
  EXPECT_TRUE(shell->over());
}

TEST(ShellTable, NotifiesTheAgentWhenTheClientDisconnects) {
  Fixture fixture;
  fixture.open().reset();
  EXPECT_TRUE(std::holds_alternative<wire::ShellEnded>(fixture.last_down()));
  EXPECT_TRUE(fixture.up(wire::ShellOutput{"late"}));
}

TEST(ShellTable, LimitsTheOpenShells) {
  Fixture fixture;
  std::vector<std::unique_ptr<Shell>> shells;
  for (size_t i = 0; i < kShellsOfServerMax; ++i) shells.push_back(fixture.open());
  EXPECT_EQ(fixture.table.open(7, {}).error().kind, Kind::exhausted);
  shells.pop_back();
  EXPECT_TRUE(fixture.open());
  fixture.linked = false;
  EXPECT_FALSE(fixture.open());
}

}  // namespace
}  // namespace trainyard::gateway

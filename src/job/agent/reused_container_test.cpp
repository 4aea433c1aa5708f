#include "agent/reused_container.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "contract/container_init.hpp"

namespace trainyard::agent {
namespace {

using contract::InitReport;

// A container whose init answers from a list, one list of reports for each order.
struct FakeInit {
  int made = 0;
  std::vector<std::string> orders;
  std::deque<std::vector<InitReport>> answers;
};

class FakeContainer final : public containers::Container {
 public:
  FakeContainer(FakeInit& script, int input)
      : thread_([init = os::PacketSocket(os::File(::fcntl(input, F_DUPFD_CLOEXEC, 3))),
                 &script]() mutable {
          os::PacketSocket mine = std::move(init);  // closed when this init ends
          for (;;) {
            const auto packet = mine.receive(60s);
            if (!packet || !*packet) return;
            script.orders.push_back((*packet)->bytes);
            if (script.answers.empty()) return;
            for (const auto& answer : script.answers.front())
              if (!mine.send(contract::encode(answer))) return;
            script.answers.pop_front();
          }
        }) {}
  ~FakeContainer() override { thread_.join(); }
  Result<void> signal(int) override { return {}; }
  void kill_all() override {}
  Result<std::optional<containers::ContainerExit>> wait(Duration) override {
    return std::optional(containers::ContainerExit{137, false, false});
  }
  Result<containers::ContainerUsage> usage() override {
    return containers::ContainerUsage{5s, 1 << 20};
  }

 private:
  std::thread thread_;
};

class ReusedContainerTest : public testing::Test {
 protected:
  containers::ContainerSpec spec(std::string argument) const {
    containers::ContainerSpec spec;
    spec.id = "j1a1-0";
    spec.arguments = {std::move(argument)};
    spec.environment = {{"A", "1"}};
    return spec;
  }
  static int output() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }

  FakeInit init_;
  ReusedContainer container_{[this](const containers::ContainerSpec& spec,
                                    int output) -> Result<std::unique_ptr<containers::Container>> {
                               ::close(output);
                               init_.made++;
                               EXPECT_EQ(spec.arguments[1], "--keep");
                               EXPECT_EQ(spec.mounts.back().source, "/entry");
                               EXPECT_TRUE(spec.environment.empty());
                               return std::unique_ptr<containers::Container>(
                                   std::make_unique<FakeContainer>(init_, spec.input));
                             },
                             "/entry"};
};

TEST_F(ReusedContainerTest, RunsOneChildAfterAnother) {
  for (int i = 0; i < 2; i++) {
    init_.answers.push_back({contract::Started{}, contract::Ended{i}});
    init_.answers.push_back({contract::Cleared{}});
  }
  for (int i = 0; i < 2; i++) {
    auto child = container_.start(spec(i == 0 ? "one" : "two"), output());
    ASSERT_TRUE(child) << child.error().message;
    const auto exit = (*child)->wait(60s);
    ASSERT_TRUE(exit && *exit);
    EXPECT_EQ((*exit)->code, i);
    EXPECT_EQ((*child)->usage()->cpu, 0s) << "the usage of earlier children does not count";
  }
  EXPECT_EQ(init_.made, 1);
  EXPECT_TRUE(container_.usable());
  container_.end();
  ASSERT_EQ(init_.orders.size(), 4u);
  EXPECT_NE(init_.orders[2].find("\"two\""), std::string::npos);
}

TEST_F(ReusedContainerTest, IsCreatedAgainForAnotherSpec) {
  for (int i = 0; i < 2; i++) {
    init_.answers.push_back({contract::Started{}, contract::Ended{0}});
    init_.answers.push_back({contract::Cleared{}});
  }
  { ASSERT_TRUE(container_.start(spec("one"), output())); }
  auto larger = spec("two");
  larger.memory_bytes = 1 << 30;
  { ASSERT_TRUE(container_.start(larger, output())); }
  EXPECT_EQ(init_.made, 2);
}

TEST_F(ReusedContainerTest, ReportsAFailedStartAndContinues) {
  init_.answers.push_back({contract::NotStarted{"executable file `x` not found in $PATH"}});
  const auto child = container_.start(spec("x"), output());
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, Kind::not_found);
  EXPECT_TRUE(container_.usable());
}

TEST_F(ReusedContainerTest, RunsNoChildAfterTheEndOfItsInit) {
  init_.answers.push_back({contract::Started{}});
  auto child = container_.start(spec("one"), output());
  ASSERT_TRUE(child);
  (void)(*child)->signal(15);  // then the simulated init ends
  const auto exit = (*child)->wait(60s);
  ASSERT_TRUE(exit && *exit);
  EXPECT_EQ((*exit)->code, 137);
  EXPECT_TRUE((*exit)->runtime_killed);
  EXPECT_FALSE(container_.usable());
}

}  // namespace
}  // namespace trainyard::agent

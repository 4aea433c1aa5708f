#include "agent/kept_container.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "contract/keeper.hpp"

namespace trainyard::agent {
namespace {

using contract::KeeperAnswer;

// A container whose keeper answers from a list, one answer list for each order.
struct Stage {
  int made = 0;
  std::vector<std::string> orders;
  std::deque<std::vector<KeeperAnswer>> answers;
};

class Staged final : public containers::Container {
 public:
  Staged(Stage& stage, int input)
      : thread_([keeper = os::PacketSocket(os::File(::fcntl(input, F_DUPFD_CLOEXEC, 3))), &stage]() mutable {
          os::PacketSocket mine = std::move(keeper);  // closed when this keeper leaves
          for (;;) {
            const auto packet = mine.receive(60s);
            if (!packet || !*packet) return;
            stage.orders.push_back((*packet)->bytes);
            if (stage.answers.empty()) return;
            for (const auto& answer : stage.answers.front())
              if (!mine.send(contract::encode(answer))) return;
            stage.answers.pop_front();
          }
        }) {}
  ~Staged() override { thread_.join(); }
  Result<void> signal(int) override { return {}; }
  void kill_all() override {}
  Result<std::optional<containers::ContainerExit>> wait(Duration) override {
    return std::optional(containers::ContainerExit{137, false, false});
  }
  Result<containers::ContainerUsage> usage() override { return containers::ContainerUsage{5s, 1 << 20}; }

 private:
  std::thread thread_;
};

class Kept : public testing::Test {
 protected:
  containers::ContainerSpec spec(std::string word) const {
    containers::ContainerSpec spec;
    spec.id = "j1a1-0";
    spec.arguments = {std::move(word)};
    spec.environment = {{"A", "1"}};
    return spec;
  }
  static int output() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }

  Stage stage_;
  KeptContainer kept_{
      [this](const containers::ContainerSpec& spec,
             int output) -> Result<std::unique_ptr<containers::Container>> {
        ::close(output);
        stage_.made++;
        EXPECT_EQ(spec.arguments[1], "--keep");
        EXPECT_EQ(spec.mounts.back().source, "/entry");
        EXPECT_TRUE(spec.environment.empty());
        return std::unique_ptr<containers::Container>(std::make_unique<Staged>(stage_, spec.input));
      },
      "/entry"};
};

TEST_F(Kept, ServesOneChildAfterAnother) {
  for (int i = 0; i < 2; i++) {
    stage_.answers.push_back({contract::Started{}, contract::Ended{i}});
    stage_.answers.push_back({contract::Cleared{}});
  }
  for (int i = 0; i < 2; i++) {
    auto child = kept_.start(spec(i == 0 ? "one" : "two"), output());
    ASSERT_TRUE(child) << child.error().message;
    const auto exit = (*child)->wait(60s);
    ASSERT_TRUE(exit && *exit);
    EXPECT_EQ((*exit)->code, i);
    EXPECT_EQ((*child)->usage()->cpu, 0s) << "what those before it used is not its own";
  }
  EXPECT_EQ(stage_.made, 1);
  EXPECT_TRUE(kept_.usable());
  kept_.end();
  ASSERT_EQ(stage_.orders.size(), 4u);
  EXPECT_NE(stage_.orders[2].find("\"two\""), std::string::npos);
}

TEST_F(Kept, IsMadeAnewForAnotherShape) {
  for (int i = 0; i < 2; i++) {
    stage_.answers.push_back({contract::Started{}, contract::Ended{0}});
    stage_.answers.push_back({contract::Cleared{}});
  }
  { ASSERT_TRUE(kept_.start(spec("one"), output())); }
  auto larger = spec("two");
  larger.memory_bytes = 1 << 30;
  { ASSERT_TRUE(kept_.start(larger, output())); }
  EXPECT_EQ(stage_.made, 2);
}

TEST_F(Kept, SaysWhatCannotBeStartedAndGoesOn) {
  stage_.answers.push_back({contract::NotStarted{"executable file `x` not found in $PATH"}});
  const auto child = kept_.start(spec("x"), output());
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, Kind::not_found);
  EXPECT_TRUE(kept_.usable());
}

TEST_F(Kept, ThatIsGoneEndsItsChildAndServesNoOther) {
  stage_.answers.push_back({contract::Started{}});
  auto child = kept_.start(spec("one"), output());
  ASSERT_TRUE(child);
  (void)(*child)->signal(15);  // upon which the keeper of this stage leaves
  const auto exit = (*child)->wait(60s);
  ASSERT_TRUE(exit && *exit);
  EXPECT_EQ((*exit)->code, 137);
  EXPECT_TRUE((*exit)->runtime_killed);
  EXPECT_FALSE(kept_.usable());
}

}  // namespace
}  // namespace trainyard::agent

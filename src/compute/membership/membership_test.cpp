#include "membership/membership.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::membership {
namespace {

// A training, told as a story; what was said last is kept as text.
class Story {
 public:
  explicit Story(Limits limits) : membership_(limits) {}

  Story& after(Duration time) {
    now_ += time;
    return say(events::TimePasses{});
  }
  Story& expect(const std::string& name) { return say(events::Expected{name}); }
  // "host/slot": the host is what stands before the slash.
  Story& comes(const std::string& name, const std::string& complaint = "", int wanted_rank = -1) {
    return say(
        events::Came{{name, name.substr(0, name.find('/')), {"10.0.0.1", 7000}, wanted_rank, complaint}});
  }
  Story& dies(const std::string& name) { return say(events::Gone{name, "killed by signal 9"}); }
  Story& finishes(const std::string& name) { return say(events::Gone{name, ""}); }
  Story& host_leaves(const std::string& host) { return say(events::HostLeaves{host}); }

  std::string said;
  std::string reason;
  Membership& membership() { return membership_; }

 private:
  Story& say(const Event& event) {
    said.clear();
    for (const Action& action : membership_.on(event, now_)) {
      if (!said.empty()) said += "; ";
      if (const auto* seated = std::get_if<actions::Seated>(&action)) {
        said += std::to_string(seated->generation.number) + ":";
        for (const Slot& slot : seated->generation.slots)
          said += " " + slot.name + "=" + std::to_string(slot.local_rank) + "of" +
                  std::to_string(slot.local_ranks);
        reason = seated->generation.reason;
      } else if (const auto* changed = std::get_if<actions::Changed>(&action)) {
        said += changed->added ? "added" : "removed";
      } else if (const auto* lost = std::get_if<actions::Lost>(&action)) {
        said += "lost " + lost->name;
      } else {
        said += "dismissed " + std::get<actions::Dismissed>(action).name;
      }
    }
    return *this;
  }

  Membership membership_;
  Instant now_{};
};

TEST(Membership, BeginsWhenAllWhoWereStartedHaveCome) {
  Story story({.ranks_min = 1, .ranks_max = 4});
  for (const char* name : {"a/0", "a/1", "b/0"}) story.expect(name);
  EXPECT_EQ(story.comes("b/0").said, "");
  EXPECT_EQ(story.comes("a/0").said, "");
  EXPECT_EQ(story.comes("a/1").said, "1: b/0=0of1 a/0=0of2 a/1=1of2");
  EXPECT_EQ(story.membership().running(), (std::vector<std::string>{"b/0", "a/0", "a/1"}));
}

TEST(Membership, GivesTheRanksThatALauncherHasDecided) {
  Story story({.ranks_min = 3, .ranks_max = 3});
  story.comes("a/1", "", 1).comes("b/0", "", 2);
  EXPECT_EQ(story.comes("a/0", "", 0).said, "1: a/0=0of2 a/1=1of2 b/0=0of1");
}

TEST(Membership, DoesNotWaitForEverForOneThatWasStarted) {
  Story story({.ranks_min = 2, .ranks_max = 4, .settle_max = 60s});
  story.expect("a/0").expect("a/1").expect("b/0").comes("a/0").comes("a/1");
  EXPECT_EQ(story.after(59s).said, "");
  EXPECT_EQ(story.after(1s).said, "1: a/0=0of2 a/1=1of2");
  EXPECT_EQ(story.comes("b/0").said, "added") << "it comes late, and is let in when the others can";
}

TEST(Membership, OneThatDiesBeforeItCameIsNotWaitedFor) {
  Story story({.ranks_min = 1});
  story.expect("a/0").expect("b/0").comes("a/0");
  EXPECT_EQ(story.dies("b/0").said, "1: a/0=0of1");
}

TEST(Membership, SurvivorsGoOnInTheirOrder) {
  Story story({.ranks_min = 1});
  for (const char* name : {"a/0", "b/0", "c/0", "d/0"}) story.expect(name);
  for (const char* name : {"a/0", "b/0", "c/0", "d/0"}) story.comes(name);
  EXPECT_EQ(story.dies("b/0").said, "lost b/0");
  EXPECT_EQ(story.comes("d/0", "allreduce: rank 1 died").said, "lost d/0") << "who still joins gives up";
  EXPECT_EQ(story.comes("c/0").said, "") << "rank 0 still runs";
  EXPECT_NE(story.membership().missing().find("rank 0 (a/0) still runs"), std::string::npos);
  EXPECT_EQ(story.comes("a/0").said, "2: a/0=0of1 c/0=0of1 d/0=0of1");
  EXPECT_EQ(story.reason, "rank 1 (b/0) was lost: killed by signal 9") << "the others failed of the same";
}

TEST(Membership, FewerThanTheMinimumWaitAndGoOnWhenOneComes) {
  Story story({.ranks_min = 2, .ranks_max = 2, .settle_max = 1s});
  story.comes("a/0").comes("b/0").dies("b/0");
  EXPECT_EQ(story.comes("a/0").said, "");
  EXPECT_EQ(story.after(24h).said, "") << "as long as it takes";
  EXPECT_EQ(story.membership().missing(), "there are 1 of at least 2 ranks");
  EXPECT_EQ(story.comes("c/0").said, "2: a/0=0of1 c/0=0of1") << "the one that has the state is rank 0";
}

TEST(Membership, NewcomersAreLetInWhenThoseWhoRunCanStop) {
  Story story({.ranks_min = 1, .ranks_max = 3});
  story.comes("a/0");
  EXPECT_EQ(story.comes("b/0").said, "added");
  EXPECT_EQ(story.comes("c/0").said, "") << "they know";
  EXPECT_EQ(story.after(24h).said, "") << "nothing failed: they may take their time";
  EXPECT_EQ(story.comes("a/0").said, "2: a/0=0of1 b/0=0of1 c/0=0of1");
  EXPECT_EQ(story.comes("d/0").said, "") << "no more than ranks_max: it waits for a seat";
  story.dies("b/0").comes("a/0");
  EXPECT_EQ(story.comes("c/0").said, "3: a/0=0of1 c/0=0of1 d/0=0of1");
}

TEST(Membership, OneThatDoesNotComeBackAfterAFailureIsLeftBehind) {
  Story story({.ranks_min = 1, .ranks_max = 3, .settle_max = 30s});
  for (const char* name : {"a/0", "b/0", "c/0"}) story.expect(name);
  for (const char* name : {"a/0", "b/0", "c/0"}) story.comes(name);
  story.dies("c/0").comes("b/0");
  EXPECT_EQ(story.after(29s).said, "");
  EXPECT_EQ(story.after(1s).said, "dismissed a/0; 2: b/0=0of1");
}

TEST(Membership, AHostThatLeavesTakesItsMembersAlong) {
  Story story({.ranks_min = 1, .ranks_max = 4});
  for (const char* name : {"a/0", "b/0", "b/1"}) story.expect(name);
  for (const char* name : {"a/0", "b/0", "b/1"}) story.comes(name);
  EXPECT_EQ(story.host_leaves("b").said, "removed");
  EXPECT_EQ(story.host_leaves("b").said, "");
  EXPECT_EQ(story.comes("b/1").said, "dismissed b/1");
  EXPECT_EQ(story.comes("a/0").said, "");
  EXPECT_EQ(story.comes("b/0").said, "dismissed b/0; 2: a/0=0of1");
}

TEST(Membership, OnesThatAreDoneDisturbNobody) {
  Story story({.ranks_min = 2, .ranks_max = 2, .settle_max = 1s});
  story.comes("a/0").comes("b/0");
  EXPECT_EQ(story.finishes("a/0").said, "");
  EXPECT_EQ(story.after(1h).said, "");
  EXPECT_EQ(story.finishes("b/0").said, "");
}

TEST(Membership, NobodyBeginsAnewWhenTheTrainingIsDone) {
  Story story({.ranks_min = 1, .ranks_max = 3});
  story.comes("a/0");
  EXPECT_EQ(story.comes("b/0").said, "added");
  EXPECT_EQ(story.finishes("a/0").said, "dismissed b/0");
  EXPECT_EQ(story.comes("c/0").said, "dismissed c/0");
}

TEST(Membership, ATrainingThatNeverHoldsIsEnded) {
  Story story({.ranks_min = 1, .ranks_max = 1, .settle_max = 1s, .generations_max = 2});
  EXPECT_EQ(story.comes("a/0").said, "1: a/0=0of1");
  EXPECT_EQ(story.comes("a/0", "it failed").said, "2: a/0=0of1");
  EXPECT_EQ(story.comes("a/0", "it failed").said, "dismissed a/0");
}

// Whatever happens in whatever order: a generation holds only who waited, nobody twice, survivors before newcomers.
TEST(Membership, HoldsItsPromisesInEveryShortStory) {
  const std::vector<std::string> people = {"a/0", "a/1", "b/0"};
  uint64_t generations = 0;
  for (uint32_t code = 0; code < 9 * 9 * 9 * 9 * 9; ++code) {
    Membership membership({.ranks_min = 1, .ranks_max = 2, .settle_max = 10s});
    std::vector<std::string> before;
    Instant now{};
    uint32_t rest = code;
    for (int step = 0; step < 5; ++step, rest /= 9) {
      const std::string& who = people[rest % 3];
      const Event event = rest / 3 % 3 == 0   ? Event(events::Came{{who, who.substr(0, 1), {}, -1, ""}})
                          : rest / 3 % 3 == 1 ? Event(events::Gone{who, "killed"})
                                              : Event(events::Expected{who});
      now += 6s;
      for (const Action& action : membership.on(event, now)) {
        const auto* seated = std::get_if<actions::Seated>(&action);
        if (!seated) continue;
        ++generations;
        std::vector<std::string> names;
        for (const Slot& slot : seated->generation.slots) names.push_back(slot.name);
        ASSERT_EQ(names, membership.running());
        ASSERT_TRUE(!names.empty() && names.size() <= 2);
        ASSERT_NE(names.front(), names.size() == 2 ? names[1] : "");
        // The old ones come first, in their order.
        std::vector<std::string> old;
        for (const auto& name : before)
          if (std::find(names.begin(), names.end(), name) != names.end()) old.push_back(name);
        ASSERT_TRUE(std::equal(old.begin(), old.end(), names.begin())) << code;
        before = names;
      }
      std::erase_if(before, [&](const std::string& name) {
        return std::holds_alternative<events::Gone>(event) && name == who;
      });
    }
  }
  EXPECT_GT(generations, 10000u);
}

}  // namespace
}  // namespace trainyard::membership

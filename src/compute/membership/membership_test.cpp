#include "membership/membership.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::membership {
namespace {

// Runs events through a Membership; `result` describes the actions of the last event.
class Scenario {
 public:
  explicit Scenario(Limits limits) : membership_(limits) {}

  Scenario& after(Duration time) {
    now_ += time;
    return apply(events::TimePasses{});
  }
  Scenario& expect(const std::string& name) { return apply(events::Expected{name}); }
  // `name` is "host/slot".
  Scenario& comes(const std::string& name, const std::string& complaint = "",
                  int wanted_rank = -1) {
    return apply(events::Came{
        {name, name.substr(0, name.find('/')), {"10.0.0.1", 7000}, wanted_rank, complaint}});
  }
  Scenario& dies(const std::string& name) {
    return apply(events::Gone{name, "killed by signal 9"});
  }
  Scenario& finishes(const std::string& name) { return apply(events::Gone{name, ""}); }
  Scenario& host_leaves(const std::string& host) { return apply(events::HostLeaves{host}); }

  std::string result;
  std::string reason;
  Membership& membership() { return membership_; }

 private:
  Scenario& apply(const Event& event) {
    result.clear();
    for (const Action& action : membership_.on(event, now_)) {
      if (!result.empty()) result += "; ";
      if (const auto* formed = std::get_if<actions::Formed>(&action)) {
        result += std::to_string(formed->generation.number) + ":";
        for (const Slot& slot : formed->generation.slots)
          result += " " + slot.name + "=" + std::to_string(slot.local_rank) + "of" +
                    std::to_string(slot.local_ranks);
        reason = formed->generation.reason;
      } else if (const auto* changed = std::get_if<actions::Changed>(&action)) {
        result += changed->added ? "added" : "removed";
      } else if (const auto* lost = std::get_if<actions::Lost>(&action)) {
        result += "lost " + lost->name;
      } else {
        result += "dismissed " + std::get<actions::Dismissed>(action).name;
      }
    }
    return *this;
  }

  Membership membership_;
  Instant now_{};
};

TEST(Membership, BeginsWhenAllStartedMembersHaveApplied) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 4});
  for (const char* name : {"a/0", "a/1", "b/0"}) scenario.expect(name);
  EXPECT_EQ(scenario.comes("b/0").result, "");
  EXPECT_EQ(scenario.comes("a/0").result, "");
  EXPECT_EQ(scenario.comes("a/1").result, "1: b/0=0of1 a/0=0of2 a/1=1of2");
  EXPECT_EQ(scenario.membership().running(), (std::vector<std::string>{"b/0", "a/0", "a/1"}));
}

TEST(Membership, AssignsTheRanksThatTheLauncherSets) {
  Scenario scenario({.ranks_min = 3, .ranks_max = 3});
  scenario.comes("a/1", "", 1).comes("b/0", "", 2);
  EXPECT_EQ(scenario.comes("a/0", "", 0).result, "1: a/0=0of2 a/1=1of2 b/0=0of1");
}

TEST(Membership, WaitsForAStartedMemberUntilTheTimeout) {
  Scenario scenario({.ranks_min = 2, .ranks_max = 4, .settle_max = 60s});
  scenario.expect("a/0").expect("a/1").expect("b/0").comes("a/0").comes("a/1");
  EXPECT_EQ(scenario.after(59s).result, "");
  EXPECT_EQ(scenario.after(1s).result, "1: a/0=0of2 a/1=1of2");
  EXPECT_EQ(scenario.comes("b/0").result, "added") << "a late member joins at the next change";
}

TEST(Membership, DoesNotWaitForAMemberThatDiedBeforeItApplied) {
  Scenario scenario({.ranks_min = 1});
  scenario.expect("a/0").expect("b/0").comes("a/0");
  EXPECT_EQ(scenario.dies("b/0").result, "1: a/0=0of1");
}

TEST(Membership, KeepsTheOrderOfSurvivors) {
  Scenario scenario({.ranks_min = 1});
  for (const char* name : {"a/0", "b/0", "c/0", "d/0"}) scenario.expect(name);
  for (const char* name : {"a/0", "b/0", "c/0", "d/0"}) scenario.comes(name);
  EXPECT_EQ(scenario.dies("b/0").result, "lost b/0");
  EXPECT_EQ(scenario.comes("d/0", "allreduce: rank 1 died").result, "lost d/0")
      << "members that are still joining give up";
  EXPECT_EQ(scenario.comes("c/0").result, "") << "rank 0 is still running";
  EXPECT_NE(scenario.membership().missing().find("rank 0 (a/0) is still running"),
            std::string::npos);
  EXPECT_EQ(scenario.comes("a/0").result, "2: a/0=0of1 c/0=0of1 d/0=0of1");
  EXPECT_EQ(scenario.reason, "rank 1 (b/0) was lost: killed by signal 9")
      << "the others failed for the same reason";
}

TEST(Membership, FewerMembersThanTheMinimumWaitForAnother) {
  Scenario scenario({.ranks_min = 2, .ranks_max = 2, .settle_max = 1s});
  scenario.comes("a/0").comes("b/0").dies("b/0");
  EXPECT_EQ(scenario.comes("a/0").result, "");
  EXPECT_EQ(scenario.after(24h).result, "") << "there is no limit";
  EXPECT_EQ(scenario.membership().missing(), "1 of at least 2 ranks");
  EXPECT_EQ(scenario.comes("c/0").result, "2: a/0=0of1 c/0=0of1")
      << "the member that has the state is rank 0";
}

TEST(Membership, NewMembersJoinWhenTheRunningOnesReturn) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 3});
  scenario.comes("a/0");
  EXPECT_EQ(scenario.comes("b/0").result, "added");
  EXPECT_EQ(scenario.comes("c/0").result, "") << "the running members know already";
  EXPECT_EQ(scenario.after(24h).result, "") << "nothing failed: no timeout";
  EXPECT_EQ(scenario.comes("a/0").result, "2: a/0=0of1 b/0=0of1 c/0=0of1");
  EXPECT_EQ(scenario.comes("d/0").result, "") << "no more than ranks_max: it waits for a slot";
  scenario.dies("b/0").comes("a/0");
  EXPECT_EQ(scenario.comes("c/0").result, "3: a/0=0of1 c/0=0of1 d/0=0of1");
}

TEST(Membership, DismissesAMemberThatDoesNotReturnAfterAFailure) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 3, .settle_max = 30s});
  for (const char* name : {"a/0", "b/0", "c/0"}) scenario.expect(name);
  for (const char* name : {"a/0", "b/0", "c/0"}) scenario.comes(name);
  scenario.dies("c/0").comes("b/0");
  EXPECT_EQ(scenario.after(29s).result, "");
  EXPECT_EQ(scenario.after(1s).result, "dismissed a/0; 2: b/0=0of1");
}

TEST(Membership, DismissesMembersOfALeavingHost) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 4});
  for (const char* name : {"a/0", "b/0", "b/1"}) scenario.expect(name);
  for (const char* name : {"a/0", "b/0", "b/1"}) scenario.comes(name);
  EXPECT_EQ(scenario.host_leaves("b").result, "removed");
  EXPECT_EQ(scenario.host_leaves("b").result, "");
  EXPECT_EQ(scenario.comes("b/1").result, "dismissed b/1");
  EXPECT_EQ(scenario.comes("a/0").result, "");
  EXPECT_EQ(scenario.comes("b/0").result, "dismissed b/0; 2: a/0=0of1");
}

TEST(Membership, DoesNotReportMembersThatAreDoneAsLost) {
  Scenario scenario({.ranks_min = 2, .ranks_max = 2, .settle_max = 1s});
  scenario.comes("a/0").comes("b/0");
  EXPECT_EQ(scenario.finishes("a/0").result, "");
  EXPECT_EQ(scenario.after(1h).result, "");
  EXPECT_EQ(scenario.finishes("b/0").result, "");
}

TEST(Membership, DismissesNewMembersWhenTheTrainingIsDone) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 3});
  scenario.comes("a/0");
  EXPECT_EQ(scenario.comes("b/0").result, "added");
  EXPECT_EQ(scenario.finishes("a/0").result, "dismissed b/0");
  EXPECT_EQ(scenario.comes("c/0").result, "dismissed c/0");
}

TEST(Membership, EndsATrainingThatAlwaysFails) {
  Scenario scenario({.ranks_min = 1, .ranks_max = 1, .settle_max = 1s, .generations_max = 2});
  EXPECT_EQ(scenario.comes("a/0").result, "1: a/0=0of1");
  EXPECT_EQ(scenario.comes("a/0", "it failed").result, "2: a/0=0of1");
  EXPECT_EQ(scenario.comes("a/0", "it failed").result, "dismissed a/0");
}

// Runs all short sequences of events. A generation must contain only waiting members, none twice,
// and survivors before new members.
TEST(Membership, KeepsItsInvariantsInAllShortSequences) {
  const std::vector<std::string> members = {"a/0", "a/1", "b/0"};
  uint64_t generations = 0;
  for (uint32_t code = 0; code < 9 * 9 * 9 * 9 * 9; ++code) {
    Membership membership({.ranks_min = 1, .ranks_max = 2, .settle_max = 10s});
    std::vector<std::string> before;
    Instant now{};
    uint32_t rest = code;
    for (int step = 0; step < 5; ++step, rest /= 9) {
      const std::string& member = members[rest % 3];
      const Event event = rest / 3 % 3 == 0
                              ? Event(events::Came{{member, member.substr(0, 1), {}, -1, ""}})
                          : rest / 3 % 3 == 1 ? Event(events::Gone{member, "killed"})
                                              : Event(events::Expected{member});
      now += 6s;
      for (const Action& action : membership.on(event, now)) {
        const auto* formed = std::get_if<actions::Formed>(&action);
        if (!formed) continue;
        ++generations;
        std::vector<std::string> names;
        for (const Slot& slot : formed->generation.slots) names.push_back(slot.name);
        ASSERT_EQ(names, membership.running());
        ASSERT_TRUE(!names.empty() && names.size() <= 2);
        ASSERT_NE(names.front(), names.size() == 2 ? names[1] : "");
        // Survivors come first, in their order.
        std::vector<std::string> survivors;
        for (const auto& name : before)
          if (std::find(names.begin(), names.end(), name) != names.end()) survivors.push_back(name);
        ASSERT_TRUE(std::equal(survivors.begin(), survivors.end(), names.begin())) << code;
        before = names;
      }
      std::erase_if(before, [&](const std::string& name) {
        return std::holds_alternative<events::Gone>(event) && name == member;
      });
    }
  }
  EXPECT_GT(generations, 10000u);
}

}  // namespace
}  // namespace trainyard::membership

#include "schedule/what_if.hpp"

#include <gtest/gtest.h>

#include "schedule/projection.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

Running ending(Running running, domain::JobNumber number, Duration in) {
  running.job = number;
  running.ends_by = kNow + in;
  return running;
}

// "StopRunningJob 11: now", "AddMachines like box-1 0->1: 60 s"
std::string text_of(const WhatIfAnswer& answer) {
  const Change& change = answer.change;
  std::string text{kChangeKinds.text(change.kind)};
  if (change.job != 0) text += " " + std::to_string(change.job);
  if (!change.name.empty()) text += " " + change.name;
  if (!change.unit.empty()) text += " " + change.unit;
  if (change.to > 0)
    text += " " + std::to_string(int64_t(change.from)) + "->" + std::to_string(int64_t(change.to));
  return text + ": " +
         (answer.starts == kNow ? "now" : std::to_string((answer.starts - kNow) / 1s) + " s");
}

std::vector<std::string> answers(const Snapshot& snapshot, const WhatIfQuestion& question,
                                 const Policy& policy = {}) {
  std::vector<std::string> texts;
  for (const WhatIfAnswer& answer : what_if(snapshot, policy, kNow, question).answers)
    texts.push_back(text_of(answer));
  return texts;
}
using Texts = std::vector<std::string>;

Variant variant_of(const WaitingJob& waiting, ChangeKind kind, double from, double to) {
  return {{.kind = kind, .from = from, .to = to}, waiting};
}

TEST(WhatIf, TellsThatAJobStartsNow) {
  const WhatIf found = what_if(cluster({machine("box-1", 8)}, {}, {job(1, 1, 4)}), {}, kNow, {1});
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.starts, kNow);
  EXPECT_TRUE(found.answers.empty());
}

TEST(WhatIf, AddsAMachineOrEndsARunningJob) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {ending(running("training-job/x", "box-1", 4), 11, 60s)},
              {job(5, 1, 6)});
  const WhatIf found = what_if(snapshot, {}, kNow, {5});
  EXPECT_NE(found.reason.find("held by training-job/x (4)"), std::string::npos) << found.reason;
  EXPECT_EQ(found.starts, kNow + 60s);
  EXPECT_TRUE(found.whole);
  EXPECT_EQ(answers(snapshot, {5}),
            (Texts{"StopRunningJob 11: now", "AddMachines like box-1 0->1: now"}));
}

TEST(WhatIf, AddsAsManyMachinesAsTheGangNeeds) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {running("training-job/x", "box-1", 8)}, {job(5, 3, 8)});
  EXPECT_EQ(answers(snapshot, {5}), (Texts{"AddMachines like box-1 0->3: now"}));
}

TEST(WhatIf, AddsAMachineThatIsLargeEnough) {
  const Snapshot snapshot = cluster({machine("box-1", 8)}, {}, {job(5, 1, 16)});
  const WhatIf found = what_if(snapshot, {}, kNow, {5});
  ASSERT_EQ(found.answers.size(), 1u);
  EXPECT_EQ(text_of(found.answers[0]), "AddMachines 0->1: now");
  EXPECT_EQ(found.answers[0].change.share.cpus, 16);
  EXPECT_FALSE(found.starts) << "it would wait forever";
}

TEST(WhatIf, AddsMachinesOfTheLaunchersKinds) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {running("training-job/x", "box-1", 8)}, {job(5, 2, 4)});
  const WhatIfQuestion question{.job = 5,
                                .machine_kinds = {machine("c5.large", 2), machine("c5.xlarge", 4)}};
  EXPECT_EQ(answers(snapshot, question), (Texts{"AddMachines c5.xlarge 0->2: now"}));
}

TEST(WhatIf, AddsNoMachineWhereGangsAreScaledToTheOnlyMachine) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {running("training-job/x", "box-1", 8)}, {job(5, 3, 8)});
  EXPECT_EQ(answers(snapshot, {5}, {.scale_gangs = true}), Texts{});
}

TEST(WhatIf, ShrinksTheGangToTheLargestThatStartsNow) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {ending(running("training-job/x", "box-1", 4), 11, 60s)},
              {job(5, 4, 2)});
  const WhatIfQuestion question{
      .job = 5,
      .variants = {variant_of(job(5, 3, 2), ChangeKind::shrink_gang, 4, 3),
                   variant_of(job(5, 2, 2), ChangeKind::shrink_gang, 4, 2),
                   variant_of(job(5, 1, 2), ChangeKind::shrink_gang, 4, 1)}};
  EXPECT_EQ(answers(snapshot, question), (Texts{"ShrinkGang 4->2: now", "StopRunningJob 11: now",
                                                "AddMachines like box-1 0->1: now"}));
}

TEST(WhatIf, RaisesALimit) {
  Snapshot snapshot = cluster({machine("box-1", 16)}, {}, {job(5, 1, 6)});
  snapshot.limits = {{.name = "vCPU of compute environment small", .total = 8}};
  snapshot.running = {ending(running("job/x", "box-1", 4), 11, 60s)};
  snapshot.running[0].needs = {{0, 4, true, false}};
  snapshot.waiting[0].choices = {{"small", {{0, 0, true, false}}}};
  EXPECT_EQ(
      answers(snapshot, {5}),
      (Texts{"RaiseLimit vCPU of compute environment small 8->10: now", "StopRunningJob 11: now"}));
}

TEST(WhatIf, RaisesTheCapacityOfAQuotaShare) {
  Snapshot snapshot = cluster({machine("box-1", 16)}, {}, {job(5, 2, 2)});
  snapshot.queues = {{"job queue q", 1, {}, {{"red", {{"instances", 3}}}}}};
  snapshot.running = {ending(running("training-job/x", "box-1", 4), 11, 60s)};
  snapshot.running[0].queue = 0;
  snapshot.running[0].share = "red";
  snapshot.running[0].demands = {{"instances", 2}};
  snapshot.waiting[0].share = "red";
  snapshot.waiting[0].demands = {{"instances", 2}};
  EXPECT_EQ(answers(snapshot, {5}),
            (Texts{"RaiseQuotaShare red instances 3->4: now", "StopRunningJob 11: now"}));
}

TEST(WhatIf, RaisesThePriorityAboveTheJobsBeforeIt) {
  Snapshot snapshot = cluster({machine("box-1", 4)}, {}, {job(4, 1, 4), job(5, 1, 4)});
  snapshot.queues = {{.name = "job queue q", .fair = FairShare{.decay = 60s}}};
  snapshot.waiting[0].priority = 7;
  const auto found = answers(snapshot, {5});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "RaisePriority 0->8: now");
  snapshot.waiting[0].priority = int64_t(kPriorityMax);
  for (const auto& text : answers(snapshot, {5}))
    EXPECT_FALSE(text.starts_with("priority")) << "AWS accepts no higher priority";
}

TEST(WhatIf, CancelsAJobBeforeIt) {
  const Snapshot snapshot = cluster({machine("box-1", 8)}, {running("training-job/x", "box-1", 4)},
                                    {job(4, 1, 8), job(5, 1, 4)});
  const auto found = answers(snapshot, {5});
  EXPECT_NE(std::ranges::find(found, "StopWaitingJob 4: now"), found.end());
}

TEST(WhatIf, ChangesTheQueue) {
  Snapshot snapshot = cluster({machine("box-1", 8)}, {}, {job(5, 1, 4)});
  snapshot.limits = {{.name = "licences", .total = 0}};
  snapshot.queues.push_back({"job queue fast"});
  snapshot.waiting[0].choices = {{"", {{0, 1, false, false}}}};
  WaitingJob moved = job(5, 1, 4);
  moved.queue = 1;
  const WhatIfQuestion question{
      .job = 5, .variants = {{{.kind = ChangeKind::change_queue, .name = "fast"}, moved}}};
  EXPECT_EQ(answers(snapshot, question),
            (Texts{"ChangeQueue fast: now", "RaiseLimit licences 0->1: now"}));
}

// Two jobs hold the machine. With the end of the first alone the job starts when the second ends.
TEST(WhatIf, RanksChangesByTheStart) {
  const Snapshot snapshot = cluster({machine("box-1", 8)},
                                    {ending(running("training-job/x", "box-1", 4), 11, 60s),
                                     ending(running("training-job/y", "box-1", 4), 12, 600s)},
                                    {job(5, 1, 8)});
  EXPECT_EQ(what_if(snapshot, {}, kNow, {5}).starts, kNow + 600s);
  EXPECT_EQ(answers(snapshot, {5}),
            (Texts{"AddMachines like box-1 0->1: now", "StopRunningJob 12: 60 s"}));
}

// The job that began last loses the least work.
TEST(WhatIf, RanksEqualEndsByTheLeastLostWork) {
  Snapshot snapshot = cluster({machine("box-1", 8)},
                              {ending(running("training-job/x", "box-1", 4), 11, 60s),
                               ending(running("training-job/y", "box-1", 4), 12, 60s)},
                              {job(5, 1, 4)});
  snapshot.running[0].started = kNow - 100s;
  snapshot.running[1].started = kNow - 10s;
  const auto found = answers(snapshot, {5});
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0], "StopRunningJob 12: now");
  EXPECT_EQ(found[1], "StopRunningJob 11: now");
}

TEST(WhatIf, NamesNoJobThatTheCallerMayNotSee) {
  const Snapshot snapshot = cluster({machine("box-1", 8)},
                                    {ending(running("training-job/x", "box-1", 4), 11, 60s),
                                     ending(running("training-job/y", "box-1", 4), 12, 60s)},
                                    {job(4, 1, 8), job(5, 1, 4)});
  for (const domain::JobNumber hidden : {4, 11, 12}) {
    const WhatIfQuestion question{
        .job = 5, .may_name = [&](domain::JobNumber number) { return number != hidden; }};
    for (const WhatIfAnswer& answer : what_if(snapshot, {}, kNow, question).answers)
      EXPECT_NE(answer.change.job, hidden) << text_of(answer);
  }
}

// The plan of the snapshot costs four entries, a plan with another machine five.
TEST(WhatIf, StopsWhenItsBudgetIsSpent) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8)}, {ending(running("training-job/x", "box-1", 4), 11, 60s)},
              {job(5, 1, 6)});
  const WhatIfQuestion small{.job = 5, .entries_max = 9}, none{.job = 5, .entries_max = 0};
  EXPECT_EQ(answers(snapshot, small).size(), 1u);
  EXPECT_FALSE(what_if(snapshot, {}, kNow, small).whole);
  EXPECT_TRUE(answers(snapshot, none).empty());
  EXPECT_FALSE(what_if(snapshot, {}, kNow, none).reason.empty());
}

TEST(ProjectedStart, PlansAtTheEndOfEachJob) {
  PlanBudget budget(100, 10'000);
  Snapshot snapshot =
      cluster({machine("box-1", 4)}, {ending(running("training-job/x", "box-1", 4), 11, 60s)},
              {job(1, 1, 4), job(2, 1, 4), job(3, 1, 4)});
  snapshot.waiting[0].lasts_max = 100s;
  snapshot.waiting[1].lasts_max = 1000s;
  EXPECT_EQ(projected_start(snapshot, {}, kNow, 1, {}, budget), kNow + 60s);
  EXPECT_EQ(projected_start(snapshot, {}, kNow, 2, {}, budget), kNow + 160s);
  EXPECT_EQ(projected_start(snapshot, {}, kNow, 3, {}, budget), kNow + 1160s);
  snapshot.waiting[1].lasts_max.reset();
  EXPECT_FALSE(projected_start(snapshot, {}, kNow, 3, {}, budget)) << "the end of 2 is unknown";
  EXPECT_FALSE(budget.spent());
}

TEST(ProjectedStart, PlansAtTheEndOfWarmPools) {
  PlanBudget budget(100, 10'000);
  Snapshot snapshot = cluster({machine("box-1", 4)}, {}, {job(1, 1, 4)});
  snapshot.pools = {{9, "a pool", {{"box-1", share(4)}}, kNow + 30s}};
  EXPECT_EQ(projected_start(snapshot, {}, kNow, 1, {}, budget), kNow + 30s);
}

TEST(ProjectedStart, IsUnknownOnceTheBudgetIsSpent) {
  const Snapshot snapshot = cluster({machine("box-1", 4)}, {}, {job(1, 1, 4)});
  PlanBudget none(0, 10'000), small(10, 2), enough(1, 3);
  EXPECT_FALSE(projected_start(snapshot, {}, kNow, 1, {}, none));
  EXPECT_FALSE(projected_start(snapshot, {}, kNow, 1, {}, small));
  EXPECT_TRUE(none.spent() && small.spent());
  EXPECT_EQ(projected_start(snapshot, {}, kNow, 1, {}, enough), kNow);
  EXPECT_FALSE(enough.spent());
}

}  // namespace
}  // namespace trainyard::schedule

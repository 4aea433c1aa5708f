#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

TEST(Plan, StartsJobsThatFitInOrder) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8, 32)}, {}, {job(1, 2, 2, 4), job(2, 1, 4, 4), job(3, 1, 1, 1)});
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
  EXPECT_EQ(reason(snapshot, 3),
            "waits for 1 more vCPU on machine box-1 (needs 1, 0 free): held by training-job/a (4), "
            "training-job/b (4)");
}

TEST(Plan, FillsMachinesInTheOrderOfTheSnapshot) {
  const Plan found = plan(
      cluster({machine("box-1", 8, 32), machine("box-2", 8, 32)}, {}, {job(1, 3, 4, 8)}), {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].hosts[0].machine, "box-1");
  EXPECT_EQ(found.starts[0].hosts[1].machine, "box-1");
  EXPECT_EQ(found.starts[0].hosts[2].machine, "box-2");
}

TEST(Plan, PlacesASingleHostWhereItLeavesTheLeastUnused) {
  const Snapshot snapshot =
      cluster({machine("box-1", 16), machine("box-2", 8), machine("box-3", 4)}, {},
              {job(1, 1, 6), job(2, 1, 4), job(3, 1, 1)});
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 3u);
  EXPECT_EQ(found.starts[0].hosts[0].machine, "box-2");
  EXPECT_EQ(found.starts[1].hosts[0].machine, "box-3");
  EXPECT_EQ(found.starts[2].hosts[0].machine, "box-2") << "the empty machine would have more left";
}

TEST(Plan, StartsAGangWholeOrNotAtAll) {
  const Snapshot snapshot = cluster({machine("box-1", 8, 32)},
                                    {running("training-job/x", "box-1", 2, 2)}, {job(1, 2, 4, 4)});
  EXPECT_TRUE(plan(snapshot, {}, kNow).starts.empty());
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 2 more vCPU on machine box-1 (needs 8, 6 free): held by training-job/x (2)");
}

TEST(Plan, NamesEachResourceAndItsHolders) {
  const Snapshot snapshot = cluster(
      {machine("box-1", 8, 32, 2)},
      {running("training-job/x", "box-1", 2, 8, 1), running("training-job/y", "box-1", 4, 0.5),
       running("training-job/y", "box-1", 0.5, 0.5)},
      {job(1, 1, 4, 30, 2)});
  EXPECT_EQ(
      reason(snapshot, 1),
      "waits for 2.5 more vCPU on machine box-1 (needs 4, 1.5 free): held by training-job/x (2), "
      "training-job/y (4.5); and for 7 more GiB of memory on machine box-1 (needs 30, 23 free): "
      "held by training-job/x (8), training-job/y (1); and for 1 more GPU on machine box-1 (needs "
      "2, 1 free): held by training-job/x (1)");
}

TEST(Plan, NamesAMissingByte) {
  Snapshot snapshot = cluster({machine("box-1", 8, 4)}, {running("training-job/x", "box-1", 0, 0)},
                              {job(1, 1, 4, 4)});
  snapshot.running[0].hosts[0].share.memory_bytes = 1;
  EXPECT_TRUE(plan(snapshot, {}, kNow).starts.empty());
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 0.001 more GiB of memory on machine box-1 (needs 4, 4 free): held by "
            "training-job/x (0)");
}

// The end of x is unknown, so a later job might delay the first.
TEST(Plan, StartsNoLaterJobThatMightDelayTheFirst) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8, 32)}, {running("training-job/x", "box-1", 4, 4)},
              {job(1, 1, 8, 4), job(2, 1, 1, 1), job(3, 1, 1, 1)});
  EXPECT_TRUE(started(snapshot).empty());
  EXPECT_EQ(reason(snapshot, 3),
            "waits behind training-job/a, which waits for 4 more vCPU on machine box-1 (needs "
            "8, 4 free): held by training-job/x (4)");
}

TEST(Plan, AJobThatNeverFitsDelaysNoOther) {
  const Snapshot snapshot =
      cluster({machine("box-1", 8, 16)}, {}, {job(1, 1, 4, 32), job(2, 1, 1, 1)});
  EXPECT_EQ(started(snapshot), Numbers{2});
  EXPECT_EQ(reason(snapshot, 1),
            "needs 32 GiB of memory on one machine, the largest has 16: add 1 machine with at "
            "least 4 vCPU and 32 GiB of memory");
}

TEST(Plan, NamesTheMachinesToAddForAGang) {
  EXPECT_EQ(
      reason(cluster({machine("box-1", 8, 16)}, {}, {job(1, 5, 4, 4)}), 1),
      "needs capacity for 5 hosts, and all machines together have capacity for 2 of them: add 3 "
      "machines with at least 4 vCPU and 4 GiB of memory each");
  EXPECT_EQ(
      reason(cluster({machine("box-1", 8, 2), machine("box-2", 2, 8)}, {}, {job(1, 1, 4, 4)}), 1),
      "needs 4 vCPU and 4 GiB of memory on one machine, and no machine has all of it: add 1 "
      "machine with at least 4 vCPU and 4 GiB of memory");
  EXPECT_EQ(reason(cluster({}, {}, {job(1, 1, 4, 4, 1)}), 1),
            "no machine to run on: add 1 machine with at least 4 vCPU, 4 GiB of memory and 1 GPU");
}

// A reason with a clause for each of a hundred machines would be unreadable.
TEST(Plan, ShortensTheReasonOfALargeGang) {
  Snapshot snapshot = cluster({}, {}, {job(1, 100, 8)});
  for (int m = 0; m < 100; ++m) {
    snapshot.machines.push_back(machine("box-" + std::to_string(m), 8));
    for (int n = 0; n < 8; ++n)
      snapshot.running.push_back(
          running("job/" + std::to_string(8 * m + n), snapshot.machines.back().name, 1));
  }
  const std::string reason_text = reason(snapshot, 1);
  EXPECT_TRUE(reason_text.ends_with("; and for capacity on 97 more machines")) << reason_text;
  EXPECT_LT(reason_text.size(), 1'000u);
}

// Placing host by host, the largest first, leaves no capacity for the last; another layout does.
TEST(Plan, FindsALayoutWherePlacingHostByHostFails) {
  WaitingJob gang = job(1, 1, 1);
  gang.requests.clear();
  for (const auto& [cpus, gib] :
       {std::pair{4.0, 2.0}, std::pair{2.0, 8.0}, std::pair{3.0, 3.0}, std::pair{3.0, 7.0}})
    gang.requests.push_back({"ml.some", share(cpus, gib)});
  const Plan found =
      plan(cluster({machine("box-1", 6, 10), machine("box-2", 6, 10)}, {}, {gang}), {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u) << (found.waits.empty() ? "" : found.waits[0].reason);
}

TEST(Plan, KeepsAWarmPoolForJobsThatMayTakeItOver) {
  Snapshot snapshot = cluster({machine("box-1", 8, 32)}, {}, {job(1, 1, 8, 4), job(2, 1, 4, 4)});
  snapshot.pools = {{9, "the warm pool of training-job/x", {{"box-1", share(4, 4)}}}};
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 4 more vCPU on machine box-1 (needs 8, 4 free): held by the warm pool of "
            "training-job/x (4)");
  EXPECT_TRUE(started(snapshot).empty());
  snapshot.waiting[1].pools = {9};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].job, 2u);
  EXPECT_EQ(found.starts[0].pool, 9u);
  EXPECT_NE(found.waits[0].reason.str().find("held by the warm pool"), std::string::npos)
      << "at its position in the queue";
  snapshot.waiting.push_back(snapshot.waiting[1]);
  snapshot.waiting[2].job = 3;
  EXPECT_EQ(started(snapshot), Numbers{2}) << "one job takes the pool over";
}

TEST(Plan, IgnoresHostsOnRemovedMachines) {
  EXPECT_EQ(started(cluster({machine("box-1", 4)}, {running("training-job/x", "box-2", 4)},
                            {job(1, 1, 4)})),
            Numbers{1});
}

// -- dev mode -------------------------------------------------------------------------------------

WaitingJob typed(domain::JobNumber number, uint32_t hosts, const std::string& type) {
  WaitingJob waiting = job(number, hosts, 1);
  waiting.requests = {*host_request_for(type)};
  waiting.requests[0].count = hosts;
  return waiting;
}

TEST(Scaling, GivesTheWholeMachineToAGangThatIsTooLarge) {
  const Snapshot snapshot = cluster({machine("here", 2, 23.5)}, {},
                                    {typed(1, 2, "ml.m5.4xlarge"), typed(2, 1, "ml.m5.4xlarge")});
  const Plan found = plan(snapshot, {.scale_gangs = true}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].note,
            "this machine has 2 vCPU and 23.5 GiB; ml.m5.4xlarge x 2 requires 32 vCPU and 128 GiB: "
            "each host gets 1/2 of the machine: 1 vCPU, 11.7 GiB");
  EXPECT_EQ(found.starts[0].hosts[1].share.cpus, 1);
  EXPECT_EQ(found.waits[0].reason,
            "waits for 2 more vCPU on machine here (needs 2, 0 free): held by training-job/a (2)"
            "; and for 23.5 more GiB of memory on machine here (needs 23.5, 0 free): held by "
            "training-job/a (23.5)");
}

TEST(Scaling, FractionsNeverAddUpToMoreThanTheMachine) {
  for (const uint32_t hosts : {3u, 7u, 11u, 49u}) {
    const Plan found =
        plan(cluster({machine("here", 2, 23.7)}, {}, {typed(1, hosts, "ml.m5.4xlarge")}),
             {.scale_gangs = true}, kNow);
    ASSERT_EQ(found.starts.size(), 1u) << hosts;
  }
}

TEST(Scaling, LeavesHostsThatFitUnchanged) {
  const Plan found = plan(cluster({machine("here", 8, 32)}, {}, {typed(1, 2, "ml.m5.large")}),
                          {.scale_gangs = true}, kNow);
  EXPECT_EQ(found.starts[0].note, "");
  EXPECT_EQ(found.starts[0].hosts[0].share.cpus, 2);
}

TEST(Scaling, GivesEachHostWholeGpusOrNone) {
  const auto note = [](const Machine& here, uint32_t hosts, const std::string& type) {
    return plan(cluster({here}, {}, {typed(1, hosts, type)}), {.scale_gangs = true}, kNow)
        .starts.at(0)
        .note;
  };
  EXPECT_EQ(note(machine("here", 64, 512), 1, "ml.p3.2xlarge"),
            "this machine has no GPU; ml.p3.2xlarge requires 1: it runs without");
  EXPECT_EQ(
      note(machine("here", 2, 8), 1, "ml.p3.2xlarge"),
      "this machine has 2 vCPU and 8 GiB; ml.p3.2xlarge requires 8 vCPU and 61 GiB: the host gets "
      "the whole machine: 2 vCPU, 8 GiB. It has no GPU; ml.p3.2xlarge requires 1: it runs without");
  EXPECT_EQ(
      note(machine("here", 64, 512, 3), 2, "ml.g5.12xlarge"),
      "this machine has 64 vCPU and 512 GiB; ml.g5.12xlarge x 2 requires 96 vCPU and 384 GiB: each "
      "host gets 1/2 of the machine: 32 vCPU, 256 GiB. It has 3 GPUs; ml.g5.12xlarge x 2 requires "
      "8: it runs with 2 over its hosts");
}

TEST(HostRequest, RejectsUnknownTypes) {
  EXPECT_EQ(host_request_for("ml.c5.xlarge")->share.memory_bytes, 8 * kGib);
  EXPECT_EQ(host_request_for("ml.zz.xlarge").error().message,
            "unknown instance type 'ml.zz.xlarge'");
}

TEST(HostRequest, HasTheSizeThatTheGroupRequests) {
  domain::InstanceGroup group{"default", "2 vCPU", 3, share(2, 1, 1)};
  EXPECT_EQ(host_request_of(group)->share.gpus, 1);
  EXPECT_EQ(host_request_of(group)->count, 3u);
  group.share.reset();
  EXPECT_FALSE(host_request_of(group));
  group.instance_type = "ml.m5.large";
  EXPECT_EQ(host_request_of(group)->share.cpus, 2);
}

}  // namespace
}  // namespace trainyard::schedule

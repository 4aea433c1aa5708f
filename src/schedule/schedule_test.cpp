#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "base/random.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
const Instant kNow = from_milliseconds(0);

Machine machine(const std::string& name, double cpus, double gib, int64_t gpus = 0) {
  return {name, {cpus, int64_t(gib * kGib), gpus}};
}
Waiting job(domain::JobNumber number, size_t hosts, double cpus, double gib, int64_t gpus = 0) {
  const Ask ask{"ml.some", {cpus, int64_t(gib * kGib), gpus}};
  return {number,
          "training-job/" + std::string(1, char('a' + (number - 1) % 26)),
          std::vector<Ask>(hosts, ask),
          {}};
}
Held held(const std::string& holder, const std::string& machine, double cpus, double gib, int64_t gpus = 0) {
  return {holder, machine, {cpus, int64_t(gib * kGib), gpus}};
}

std::string reason(const Snapshot& snapshot, domain::JobNumber number, const Policy& policy = {}) {
  for (const Wait& wait : plan(snapshot, policy, kNow).waits)
    if (wait.job == number) return wait.reason;
  return "";
}
std::vector<domain::JobNumber> started(const Snapshot& snapshot, const Policy& policy = {}) {
  std::vector<domain::JobNumber> numbers;
  for (const Start& start : plan(snapshot, policy, kNow).starts) numbers.push_back(start.job);
  return numbers;
}
using Numbers = std::vector<domain::JobNumber>;

TEST(Plan, StartsWhatFitsInOrder) {
  const Snapshot snapshot{{machine("box-1", 8, 32)}, {}, {job(1, 2, 2, 4), job(2, 1, 4, 4), job(3, 1, 1, 1)}};
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
  EXPECT_EQ(reason(snapshot, 3),
            "waits for 1 more vCPU on machine box-1 (needs 1, 0 free): held by training-job/a (4), "
            "training-job/b (4)");
}

TEST(Plan, FillsMachinesInTheLaunchersOrder) {
  const Snapshot snapshot{{machine("box-1", 8, 32), machine("box-2", 8, 32)}, {}, {job(1, 3, 4, 8)}};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].hosts[0].machine, "box-1");
  EXPECT_EQ(found.starts[0].hosts[1].machine, "box-1");
  EXPECT_EQ(found.starts[0].hosts[2].machine, "box-2");
}

TEST(Plan, AGangStartsWholeOrNotAtAll) {
  const Snapshot snapshot{
      {machine("box-1", 8, 32)}, {held("training-job/x", "box-1", 2, 2)}, {job(1, 2, 4, 4)}};
  EXPECT_TRUE(plan(snapshot, {}, kNow).starts.empty());
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 2 more vCPU on machine box-1 (needs 8, 6 free): held by training-job/x (2)");
}

TEST(Plan, NamesEachResourceAndWhoHoldsIt) {
  const Snapshot snapshot{{machine("box-1", 8, 32, 2)},
                          {held("training-job/x", "box-1", 2, 8, 1), held("training-job/y", "box-1", 4, 0.5),
                           held("training-job/y", "box-1", 0.5, 0.5)},
                          {job(1, 1, 4, 30, 2)}};
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 2.5 more vCPU on machine box-1 (needs 4, 1.5 free): held by training-job/x (2), "
            "training-job/y (4.5)"
            "; and for 7 more GiB of memory on machine box-1 (needs 30, 23 free): held by training-job/x "
            "(8), training-job/y (1)"
            "; and for 1 more GPU on machine box-1 (needs 2, 1 free): held by training-job/x (1)");
}

TEST(Plan, NobodyOvertakes) {
  const Snapshot snapshot{{machine("box-1", 8, 32)},
                          {held("training-job/x", "box-1", 4, 4)},
                          {job(1, 1, 8, 4), job(2, 1, 1, 1), job(3, 1, 1, 1)}};
  EXPECT_TRUE(started(snapshot).empty());
  EXPECT_EQ(reason(snapshot, 3),
            "waits for its turn behind training-job/a, which waits for 4 more vCPU on machine box-1 (needs "
            "8, 4 free): held by "
            "training-job/x (4)");
}

TEST(Plan, WhatNeverFitsHoldsNobodyBack) {
  const Snapshot snapshot{{machine("box-1", 8, 16)}, {}, {job(1, 1, 4, 32), job(2, 1, 1, 1)}};
  EXPECT_EQ(started(snapshot), Numbers{2});
  EXPECT_EQ(reason(snapshot, 1),
            "needs 32 GiB of memory on one machine, the largest has 16: add 1 machine with at least 4 vCPU "
            "and 32 GiB of memory");
}

TEST(Plan, SaysWhatToAddForAGang) {
  EXPECT_EQ(reason({{machine("box-1", 8, 16)}, {}, {job(1, 5, 4, 4)}}, 1),
            "needs room for 5 hosts, and all machines together have room for 2 of them: add 3 machines with "
            "at least 4 vCPU and "
            "4 GiB of memory each");
  EXPECT_EQ(reason({{machine("box-1", 8, 2), machine("box-2", 2, 8)}, {}, {job(1, 1, 4, 4)}}, 1),
            "needs 4 vCPU and 4 GiB of memory on one machine, and no machine has all of it: add 1 machine "
            "with at least 4 vCPU "
            "and 4 GiB of memory");
  EXPECT_EQ(reason({{}, {}, {job(1, 1, 4, 4, 1)}}, 1),
            "there is no machine to run on: add 1 machine with at least 4 vCPU, 4 GiB of memory and 1 GPU");
}

// Host by host, the larger first, leaves no room for the last; another way does.
TEST(Plan, FindsALayoutWhereOneHostAfterTheOtherFindsNone) {
  Waiting gang{1, "training-job/a", {}, {}};
  for (const auto& [cpus, gib] :
       {std::pair{4.0, 2.0}, std::pair{2.0, 8.0}, std::pair{3.0, 3.0}, std::pair{3.0, 7.0}})
    gang.hosts.push_back({"ml.some", {cpus, int64_t(gib * kGib), 0}});
  const Snapshot snapshot{{machine("box-1", 6, 10), machine("box-2", 6, 10)}, {}, {gang}, {}};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u) << (found.waits.empty() ? "" : found.waits[0].reason);
}

TEST(Plan, APoolIsHeldForWhoMayTakeItOver) {
  Snapshot snapshot{{machine("box-1", 8, 32)}, {}, {job(1, 1, 8, 4), job(2, 1, 4, 4)}, {}};
  snapshot.pools = {{9, "the warm pool of training-job/x", {{"box-1", {4, 4 * kGib, 0}}}}};
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 4 more vCPU on machine box-1 (needs 8, 4 free): held by the warm pool of "
            "training-job/x (4)");
  EXPECT_TRUE(started(snapshot).empty());
  snapshot.waiting[1].pools = {9};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].job, 2u);
  EXPECT_EQ(found.starts[0].pool, 9u);
  snapshot.waiting.push_back(snapshot.waiting[1]);
  snapshot.waiting[2].job = 3;
  EXPECT_EQ(started(snapshot), Numbers{2}) << "once";
}

// -- dev mode -------------------------------------------------------------------------------------

Waiting typed(domain::JobNumber number, size_t hosts, const std::string& type) {
  return {number,
          "training-job/" + std::string(1, char('a' + number - 1)),
          std::vector<Ask>(hosts, *ask_for(type)),
          {}};
}

TEST(Scaling, AGangThatIsTooLargeGetsTheWholeMachine) {
  const Snapshot snapshot{
      {machine("here", 2, 23.5)}, {}, {typed(1, 2, "ml.m5.4xlarge"), typed(2, 1, "ml.m5.4xlarge")}};
  const Plan found = plan(snapshot, {.scale_gangs = true}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].note,
            "this machine has 2 vCPU and 23.5 GiB; ml.m5.4xlarge x 2 asks for 32 vCPU and 128 GiB: each host "
            "gets 1/2 of the "
            "machine: 1 vCPU, 11.7 GiB");
  EXPECT_EQ(found.starts[0].hosts[1].share.cpus, 1);
  EXPECT_EQ(found.waits[0].reason,
            "waits for 2 more vCPU on machine here (needs 2, 0 free): held by training-job/a (2)"
            "; and for 23.5 more GiB of memory on machine here (needs 23.5, 0 free): held by training-job/a "
            "(23.5)");
}

TEST(Scaling, FractionsNeverAddUpToMoreThanTheMachine) {
  for (const size_t hosts : {3u, 7u, 11u, 49u}) {
    const Snapshot snapshot{{machine("here", 2, 23.7)}, {}, {typed(1, hosts, "ml.m5.4xlarge")}};
    const Plan found = plan(snapshot, {.scale_gangs = true}, kNow);
    ASSERT_EQ(found.starts.size(), 1u) << hosts;
  }
}

TEST(Scaling, WhatFitsIsNotScaled) {
  const Snapshot snapshot{{machine("here", 8, 32)}, {}, {typed(1, 2, "ml.m5.large")}};
  const Plan found = plan(snapshot, {.scale_gangs = true}, kNow);
  EXPECT_EQ(found.starts[0].note, "");
  EXPECT_EQ(found.starts[0].hosts[0].share.cpus, 2);
}

TEST(Scaling, GpusAreWholeOrNone) {
  const auto note = [](const Machine& here, size_t hosts, const std::string& type) {
    return plan({{here}, {}, {typed(1, hosts, type)}}, {.scale_gangs = true}, kNow).starts.at(0).note;
  };
  EXPECT_EQ(note(machine("here", 64, 512), 1, "ml.p3.2xlarge"),
            "this machine has no GPU; ml.p3.2xlarge asks for 1: it runs without");
  EXPECT_EQ(note(machine("here", 2, 8), 1, "ml.p3.2xlarge"),
            "this machine has 2 vCPU and 8 GiB; ml.p3.2xlarge asks for 8 vCPU and 61 GiB: the host gets the "
            "whole machine: 2 "
            "vCPU, 8 GiB. It has no GPU; ml.p3.2xlarge asks for 1: it runs without");
  EXPECT_EQ(note(machine("here", 64, 512, 3), 2, "ml.g5.12xlarge"),
            "this machine has 64 vCPU and 512 GiB; ml.g5.12xlarge x 2 asks for 96 vCPU and 384 GiB: each "
            "host gets 1/2 of the "
            "machine: 32 vCPU, 256 GiB. It has 3 GPUs; ml.g5.12xlarge x 2 asks for 8: it runs with 2 over "
            "its hosts");
}

TEST(AskFor, UnknownTypesAreInvalid) {
  EXPECT_EQ(ask_for("ml.c5.xlarge")->share.memory_bytes, 8 * kGib);
  EXPECT_EQ(ask_for("ml.zz.xlarge").error().message, "the size of instance type 'ml.zz.xlarge' is not known");
}

// -- properties, over seeds -----------------------------------------------------------------------------

Snapshot random_snapshot(SeededRandom& random) {
  Snapshot snapshot;
  for (uint64_t m = random.below(4); m > 0; --m)
    snapshot.machines.push_back(machine("box-" + std::to_string(m), double(1 + random.below(16)),
                                        double(1 + random.below(64)), int64_t(random.below(3))));
  for (Machine& each : snapshot.machines)
    for (uint64_t h = random.below(3); h > 0; --h) {
      domain::Share share{each.total.cpus / double(2 + random.below(4)), each.total.memory_bytes / 4,
                          each.total.gpus / 2};
      snapshot.held.push_back({"training-job/h" + std::to_string(h), each.name, share});
    }
  const uint64_t jobs = random.below(7);
  for (uint64_t number = 1; number <= jobs; ++number)
    snapshot.waiting.push_back(job(number, 1 + random.below(4), double(1 + random.below(32)) / 4,
                                   double(1 + random.below(40)) / 2, int64_t(random.below(2))));
  return snapshot;
}

class Seeds : public testing::Test {
 protected:
  static constexpr uint64_t kSeeds = 2'000;
};

TEST_F(Seeds, NothingIsOverPromisedAndEachJobAppearsOnce) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededRandom random(seed);
    const Snapshot snapshot = random_snapshot(random);
    const Policy policy{.scale_gangs = random.chance(2)};
    const Plan found = plan(snapshot, policy, kNow);
    std::map<domain::JobNumber, int> seen;
    std::map<std::string, domain::Share> used;
    const auto use = [&](const std::string& on, const domain::Share& share) {
      used[on].cpus += share.cpus;
      used[on].memory_bytes += share.memory_bytes;
      used[on].gpus += share.gpus;
    };
    for (const Held& each : snapshot.held) use(each.machine, each.share);
    for (const Start& start : found.starts) {
      ++seen[start.job];
      EXPECT_EQ(start.hosts.size(), snapshot.waiting[start.job - 1].hosts.size()) << "seed " << seed;
      for (const Placement& placement : start.hosts) use(placement.machine, placement.share);
    }
    for (const Machine& each : snapshot.machines) {
      EXPECT_LE(used[each.name].cpus, each.total.cpus + 1e-6) << "seed " << seed;
      EXPECT_LE(used[each.name].memory_bytes, each.total.memory_bytes) << "seed " << seed;
      EXPECT_LE(used[each.name].gpus, each.total.gpus) << "seed " << seed;
    }
    for (const Wait& wait : found.waits) {
      ++seen[wait.job];
      EXPECT_FALSE(wait.reason.empty()) << "seed " << seed;
    }
    EXPECT_EQ(seen.size(), snapshot.waiting.size()) << "seed " << seed;
    for (const auto& [number, times] : seen) EXPECT_EQ(times, 1) << "seed " << seed;
  }
}

// All ways, one after the other.
bool fits(const std::vector<Ask>& hosts, size_t next, std::vector<domain::Share>& left) {
  if (next == hosts.size()) return true;
  for (domain::Share& room : left) {
    const domain::Share& share = hosts[next].share;
    if (room.cpus < share.cpus || room.memory_bytes < share.memory_bytes || room.gpus < share.gpus) continue;
    room = {room.cpus - share.cpus, room.memory_bytes - share.memory_bytes, room.gpus - share.gpus};
    const bool rest = fits(hosts, next + 1, left);
    room = {room.cpus + share.cpus, room.memory_bytes + share.memory_bytes, room.gpus + share.gpus};
    if (rest) return true;
  }
  return false;
}

TEST_F(Seeds, AGangOfUnlikeHostsStartsWhereverThatCanBe) {
  int started_gangs = 0, greedy_sizes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededRandom random(seed);
    Snapshot snapshot;
    std::vector<domain::Share> left;
    for (uint64_t m = 1 + random.below(4); m > 0; --m) {
      snapshot.machines.push_back(machine("box-" + std::to_string(m), double(2 + random.below(10)),
                                          double(2 + random.below(10)), int64_t(random.below(3))));
      left.push_back(snapshot.machines.back().total);
    }
    Waiting gang{1, "training-job/a", {}, {}};
    for (uint64_t groups = 1 + random.below(4); groups > 0; --groups) {
      const Ask ask{
          "ml.some",
          {double(1 + random.below(5)), int64_t(1 + random.below(5)) * kGib, int64_t(random.below(2))}};
      gang.hosts.insert(gang.hosts.end(), 1 + random.below(2), ask);
    }
    snapshot.waiting = {gang};
    const bool could = fits(gang.hosts, 0, left);
    EXPECT_EQ(started(snapshot).size(), could ? 1u : 0u) << "seed " << seed;
    started_gangs += could;
    greedy_sizes += gang.hosts.size() > 3;
  }
  EXPECT_GT(started_gangs, 200);
  EXPECT_GT(greedy_sizes, 200);
}

TEST_F(Seeds, EqualArgumentsGiveEqualPlans) {
  for (uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    SeededRandom random(seed);
    const Snapshot snapshot = random_snapshot(random);
    const Plan one = plan(snapshot, {}, kNow), two = plan(snapshot, {}, kNow);
    ASSERT_EQ(one.starts.size(), two.starts.size());
    ASSERT_EQ(one.waits.size(), two.waits.size());
    for (size_t i = 0; i < one.waits.size(); ++i) EXPECT_EQ(one.waits[i].reason, two.waits[i].reason);
    for (size_t i = 0; i < one.starts.size(); ++i)
      for (size_t h = 0; h < one.starts[i].hosts.size(); ++h)
        EXPECT_EQ(one.starts[i].hosts[h].machine, two.starts[i].hosts[h].machine);
  }
}

// Adds to the machines exactly what the sentence names.
void obey(Snapshot& snapshot, const std::string& sentence) {
  static const std::regex more(R"(for ([0-9.]+) more (vCPU|GiB of memory|GPU) on machine (\S+))");
  static const std::regex whole(
      R"(([0-9]+) machines? with at least (?:([0-9.]+) vCPU)(?:(?:, | and )([0-9.]+) GiB of memory)?(?:(?:, | and )([0-9]+) GPU)?)");
  for (std::sregex_iterator each(sentence.begin(), sentence.end(), more), end; each != end; ++each) {
    const double amount = std::stod((*each)[1]);
    for (Machine& grown : snapshot.machines) {
      if (grown.name != (*each)[3]) continue;
      if ((*each)[2] == "vCPU")
        grown.total.cpus += amount;
      else if ((*each)[2] == "GPU")
        grown.total.gpus += int64_t(amount);
      else
        grown.total.memory_bytes += int64_t(amount * kGib);
    }
  }
  for (std::sregex_iterator each(sentence.begin(), sentence.end(), whole), end; each != end; ++each)
    for (int i = 0; i < std::stoi((*each)[1]); ++i)
      snapshot.machines.push_back(machine(
          "new-" + std::to_string(snapshot.machines.size()), std::stod((*each)[2]),
          (*each)[3].matched ? std::stod((*each)[3]) : 0, (*each)[4].matched ? std::stoi((*each)[4]) : 0));
}

TEST_F(Seeds, DoingWhatTheSentenceSaysStartsTheJob) {
  int obeyed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededRandom random(seed);
    Snapshot snapshot = random_snapshot(random);
    if (snapshot.waiting.empty()) continue;
    snapshot.waiting.resize(1);
    const std::string sentence = reason(snapshot, 1);
    if (sentence.empty()) continue;
    ++obeyed;
    // Whole machines first; what they leave missing for others' sake, the next sentence says.
    obey(snapshot, sentence);
    const std::string after = reason(snapshot, 1);
    if (sentence.starts_with("waits")) {
      EXPECT_EQ(after, "") << "seed " << seed << ": " << sentence;
    } else {
      EXPECT_TRUE(after.empty() || after.starts_with("waits"))
          << "seed " << seed << ": " << sentence << " -> " << after;
      obey(snapshot, after);
      EXPECT_EQ(reason(snapshot, 1), "") << "seed " << seed << ": " << after;
    }
  }
  EXPECT_GT(obeyed, 500);
}

// -- queues: priorities, and environments with limits

Waiting queued(domain::JobNumber number, double cpus, std::vector<std::string> environments,
               int64_t priority = 1) {
  Waiting waiting = job(number, 1, cpus, 1);
  waiting.environments = std::move(environments);
  waiting.priority = priority;
  return waiting;
}

TEST(Queues, TheMoreUrgentGoFirstAndEqualsInOrder) {
  Snapshot snapshot{
      {machine("box-1", 4, 32)}, {}, {job(1, 1, 2, 1), queued(2, 2, {}, 9), queued(3, 2, {}, 9)}};
  EXPECT_EQ(started(snapshot), (Numbers{2, 3}));
  snapshot.waiting[0].priority = 9;
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
}

TEST(Queues, TheFirstEnvironmentWithRoomIsTaken) {
  Snapshot snapshot{{machine("box-1", 16, 32)}, {held("training-job/x", "box-1", 2, 1)}, {}};
  snapshot.held[0].environment = "small";
  snapshot.environments = {{"small", 4}, {"large", 6}, {"any", 0}};
  snapshot.waiting = {queued(1, 3, {"small", "large"}), queued(2, 2, {"small"}),
                      queued(3, 5, {"large", "any"})};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 3u);
  EXPECT_EQ(found.starts[0].environment, "large");
  EXPECT_EQ(found.starts[1].environment, "small");
  EXPECT_EQ(found.starts[2].environment, "any");
}

TEST(Queues, WhoWaitsForAnEnvironmentHoldsBackItsOwnAndNobodyElse) {
  Snapshot snapshot{{machine("box-1", 16, 32)}, {held("training-job/x", "box-1", 2, 1)}, {}};
  snapshot.held[0].environment = "small";
  snapshot.environments = {{"small", 4}, {"large", 8}};
  snapshot.waiting = {queued(1, 9, {"small"}), queued(2, 3, {"small"}), queued(3, 1, {"small"}),
                      queued(4, 1, {"small", "large"}), job(5, 1, 1, 1)};
  EXPECT_EQ(started(snapshot), (Numbers{4, 5}));
  EXPECT_EQ(reason(snapshot, 1),
            "needs 9 vCPU, and compute environment small has at most 4: raise its maxvCpus");
  EXPECT_EQ(reason(snapshot, 2), "waits for 3 vCPU of compute environment small: 2 of its 4 are used");
  EXPECT_EQ(
      reason(snapshot, 3),
      "waits for its turn behind training-job/b, which waits for 3 vCPU of compute environment small: 2 of "
      "its 4 are used");
  snapshot.environments.clear();
  EXPECT_EQ(reason(snapshot, 2),
            "waits for a compute environment: none of its job queue is there and enabled");
}

TEST(Queues, AHostMayAskForASizeOfItsOwn) {
  domain::InstanceGroup group{"default", "2 vCPU", 1, domain::Share{2, kGib, 1}};
  EXPECT_EQ(ask_of(group)->share.gpus, 1);
  group.share.reset();
  EXPECT_FALSE(ask_of(group));
  group.instance_type = "ml.m5.large";
  EXPECT_EQ(ask_of(group)->share.cpus, 2);
}

}  // namespace
}  // namespace trainyard::schedule

// Tests the invariants of every plan, over many small clusters.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "base/random.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

Snapshot random_snapshot(SeededRandom& random) {
  Snapshot snapshot = cluster({}, {}, {});
  for (uint64_t m = random.below(4); m > 0; --m)
    snapshot.machines.push_back(machine("box-" + std::to_string(m), double(1 + random.below(16)),
                                        double(1 + random.below(64)), int64_t(random.below(3))));
  for (Machine& each : snapshot.machines)
    for (uint64_t h = random.below(3); h > 0; --h) {
      domain::Share share{each.total.cpus / double(2 + random.below(4)),
                          each.total.memory_bytes / 4, each.total.gpus / 2};
      Running made = running("training-job/h" + std::to_string(h), each.name, 0);
      made.hosts[0].share = share;
      if (random.chance(2)) made.ends_by = kNow + 1s * int64_t(1 + random.below(100));
      snapshot.running.push_back(std::move(made));
    }
  const uint64_t jobs = random.below(7);
  for (uint64_t number = 1; number <= jobs; ++number) {
    snapshot.waiting.push_back(job(number, uint32_t(1 + random.below(4)),
                                   double(1 + random.below(32)) / 4,
                                   double(1 + random.below(40)) / 2, int64_t(random.below(2))));
    if (random.chance(2)) snapshot.waiting.back().lasts_max = 1s * int64_t(1 + random.below(100));
  }
  return snapshot;
}

class Seeds : public testing::Test {
 protected:
  static constexpr uint64_t kSeeds = 2'000;
};

TEST_F(Seeds, NothingIsOverallocatedAndEachJobAppearsOnce) {
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
    for (const Running& each : snapshot.running) use(each.hosts[0].machine, each.hosts[0].share);
    for (const Start& start : found.starts) {
      ++seen[start.job];
      EXPECT_EQ(start.hosts.size(), snapshot.waiting[start.job - 1].requests[0].count)
          << "seed " << seed;
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

// Tries all layouts.
bool fits(const std::vector<domain::Share>& hosts, size_t next, std::vector<domain::Share>& left) {
  if (next == hosts.size()) return true;
  for (domain::Share& capacity : left) {
    const domain::Share& share = hosts[next];
    if (capacity.cpus < share.cpus || capacity.memory_bytes < share.memory_bytes ||
        capacity.gpus < share.gpus)
      continue;
    capacity = {capacity.cpus - share.cpus, capacity.memory_bytes - share.memory_bytes,
                capacity.gpus - share.gpus};
    const bool rest = fits(hosts, next + 1, left);
    capacity = {capacity.cpus + share.cpus, capacity.memory_bytes + share.memory_bytes,
                capacity.gpus + share.gpus};
    if (rest) return true;
  }
  return false;
}

TEST_F(Seeds, AGangOfDifferentHostsStartsIfAnyLayoutFits) {
  int started_gangs = 0, greedy_sizes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededRandom random(seed);
    Snapshot snapshot = cluster({}, {}, {});
    std::vector<domain::Share> left, hosts;
    for (uint64_t m = 1 + random.below(4); m > 0; --m) {
      snapshot.machines.push_back(machine("box-" + std::to_string(m), double(2 + random.below(10)),
                                          double(2 + random.below(10)), int64_t(random.below(3))));
      left.push_back(snapshot.machines.back().total);
    }
    WaitingJob gang = job(1, 1, 1);
    gang.requests.clear();
    for (uint64_t groups = 1 + random.below(4); groups > 0; --groups) {
      const HostRequest request{"ml.some",
                                {double(1 + random.below(5)), int64_t(1 + random.below(5)) * kGib,
                                 int64_t(random.below(2))}};
      gang.requests.push_back(request);
      gang.requests.back().count = uint32_t(1 + random.below(2));
      hosts.insert(hosts.end(), gang.requests.back().count, request.share);
    }
    snapshot.waiting = {gang};
    const bool could = fits(hosts, 0, left);
    EXPECT_EQ(started(snapshot).size(), could ? 1u : 0u) << "seed " << seed;
    started_gangs += could;
    greedy_sizes += hosts.size() > 3;
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
    for (size_t i = 0; i < one.waits.size(); ++i)
      EXPECT_EQ(one.waits[i].reason, two.waits[i].reason);
    for (size_t i = 0; i < one.starts.size(); ++i)
      for (size_t h = 0; h < one.starts[i].hosts.size(); ++h)
        EXPECT_EQ(one.starts[i].hosts[h].machine, two.starts[i].hosts[h].machine);
  }
}

// Adds to the machines exactly what the reason names.
void obey(Snapshot& snapshot, const std::string& reason_text) {
  static const std::regex more(R"(for ([0-9.]+) more (vCPU|GiB of memory|GPU) on machine (\S+))");
  static const std::regex whole(
      R"(([0-9]+) machines? with at least (?:([0-9.]+) vCPU)(?:(?:, | and )([0-9.]+) GiB of memory)?(?:(?:, | and )([0-9]+) GPU)?)");
  for (std::sregex_iterator each(reason_text.begin(), reason_text.end(), more), end; each != end;
       ++each) {
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
  for (std::sregex_iterator each(reason_text.begin(), reason_text.end(), whole), end; each != end;
       ++each)
    for (int i = 0; i < std::stoi((*each)[1]); ++i)
      snapshot.machines.push_back(machine("new-" + std::to_string(snapshot.machines.size()),
                                          std::stod((*each)[2]),
                                          (*each)[3].matched ? std::stod((*each)[3]) : 0,
                                          (*each)[4].matched ? std::stoi((*each)[4]) : 0));
}

TEST_F(Seeds, FollowingThePendingReasonStartsTheJob) {
  int obeyed = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SeededRandom random(seed);
    Snapshot snapshot = random_snapshot(random);
    if (snapshot.waiting.empty()) continue;
    snapshot.waiting.resize(1);
    const std::string reason_text = reason(snapshot, 1);
    if (reason_text.empty()) continue;
    ++obeyed;
    // Whole machines first; the next reason names what is still missing because of other jobs.
    obey(snapshot, reason_text);
    const std::string after = reason(snapshot, 1);
    if (reason_text.starts_with("waits")) {
      EXPECT_EQ(after, "") << "seed " << seed << ": " << reason_text;
    } else {
      EXPECT_TRUE(after.empty() || after.starts_with("waits"))
          << "seed " << seed << ": " << reason_text << " -> " << after;
      obey(snapshot, after);
      EXPECT_EQ(reason(snapshot, 1), "") << "seed " << seed << ": " << after;
    }
  }
  EXPECT_GT(obeyed, 500);
}

}  // namespace
}  // namespace trainyard::schedule

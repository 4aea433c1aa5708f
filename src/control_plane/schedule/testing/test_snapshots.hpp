// Defines short notation for this module's tests: machines, waiting jobs and running jobs.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/plan.hpp"
#include "schedule/shares.hpp"

namespace trainyard::schedule::test {

inline constexpr int64_t kGib = int64_t{1} << 30;
inline const Instant kNow = from_milliseconds(0);
using Numbers = std::vector<domain::JobNumber>;

inline Share share(double cpus, double gib = 1, int64_t gpus = 0) {
  return {cpus, int64_t(gib * double(kGib)), gpus};
}
inline Machine machine(const std::string& name, double cpus, double gib = 1'000, int64_t gpus = 0,
                       const std::string& place = "") {
  return {name, share(cpus, gib, gpus), place};
}
inline std::string name_of(domain::JobNumber number) {
  return "training-job/" + std::string(1, char('a' + (number - 1) % 26));
}
inline WaitingJob job(domain::JobNumber number, uint32_t hosts, double cpus, double gib = 1,
                      int64_t gpus = 0) {
  WaitingJob waiting;
  waiting.job = number;
  waiting.name = name_of(number);
  waiting.requests = {{"ml.some", share(cpus, gib, gpus), hosts}};
  return waiting;
}
inline Running running(const std::string& name, const std::string& machine, double cpus,
                       double gib = 1, int64_t gpus = 0) {
  Running made;
  made.name = name;
  made.hosts = {{machine, share(cpus, gib, gpus)}};
  return made;
}
// One queue, in the order of submission.
inline Snapshot cluster(std::vector<Machine> machines, std::vector<Running> running,
                        std::vector<WaitingJob> waiting) {
  Snapshot snapshot;
  snapshot.machines = std::move(machines);
  snapshot.running = std::move(running);
  snapshot.waiting = std::move(waiting);
  snapshot.queues = {{"training jobs"}};
  return snapshot;
}

inline std::string reason(const Snapshot& snapshot, domain::JobNumber number,
                          const Policy& policy = {}) {
  for (const Wait& wait : plan(snapshot, policy, kNow).waits)
    if (wait.job == number) return wait.reason.str();
  return "";
}
inline Numbers started(const Snapshot& snapshot, const Policy& policy = {}) {
  Numbers numbers;
  for (const Start& start : plan(snapshot, policy, kNow).starts) numbers.push_back(start.job);
  return numbers;
}
inline Numbers preempted(const Snapshot& snapshot) {
  Numbers numbers;
  for (const Preemption& each : plan(snapshot, {}, kNow).preemptions) numbers.push_back(each.job);
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace trainyard::schedule::test

// AgentLinks connects a launcher with the agents' links, which other modules own: agents report
// what their allocation serves, and an idle one gets its next order (docs/decisions/38).
//
// It refuses an agent that speaks of an allocation in which it cannot run: of another machine, of
// another submitter, one
// that has ended, or one other than that in which its attempt has begun. take() and report()
// exclude each other, so an attempt either begins in an allocation, or the launcher knows that it
// never will.
//
// Threads: report() and connect() from any; the others from the launcher's. Lifetime: outlives the
// launcher and what calls report(); the sender outlives the launcher's last call.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::launch {

// The report of a linked agent on its allocation. Its token was verified.
struct AllocationReport {
  uint64_t allocation = 0;  // Slurm's number of its job
  uint32_t served = 0;      // attempts that it has served before this one
  domain::AttemptId attempt;
  std::string token;
  std::string machine;      // of the attempt, as the ledger has it
  std::string submitter;    // of its job, as the ledger has it
  bool begun = false;       // it has reported facts, so it has begun in this allocation
  bool idle = false;        // the attempt ends, and the agent waits for an order
  bool keeps_host = false;  // idle: the container and network may serve a job like this one
  Duration time_left{};     // idle: of the allocation
};

// An order for an idle agent; "" releases the allocation.
struct AllocationOrder {
  uint64_t allocation = 0;
  domain::AttemptId from;  // the attempt that the agent has served
  std::string order;
  bool same_host = false;  // for the container that it keeps
};

// An allocation in which agents may run.
struct OpenAllocation {
  std::string machine;      // "": not known yet
  domain::AttemptId first;  // the attempt for which it was made
  // The user or role for whose attempts it was made; "": not known.
  std::string submitter = {};
};

class AgentLinks {
 public:
  // Returns false if no such agent is linked; true: it is on its way.
  using Send = std::function<bool(const AllocationOrder&)>;

  void connect(Send send) {
    const MutexLock lock(mutex_);
    send_ = std::move(send);
  }

  // Keeps the newest report of each open allocation. Returns why the agent is refused; "": it is
  // not. Of an allocation that is not open no report is needed: it is so new that it serves its
  // first attempt, or it ends.
  std::string report(AllocationReport report) {
    const std::string job = "Slurm job " + std::to_string(report.allocation);
    const MutexLock lock(mutex_);
    const auto open = open_.find(report.allocation);
    if (open == open_.end())
      return report.served == 0 || report.begun ? "" : job + " may not begin another attempt";
    if (!open->second.machine.empty() && open->second.machine != report.machine)
      return job + " is not on " + report.machine;
    // The Unix account of one user must not get the orders of another user's attempts.
    if (!open->second.submitter.empty() && open->second.submitter != report.submitter)
      return job + " does not serve the attempts of " + report.submitter;
    if (report.served == 0 && open->second.first != report.attempt)
      return job + " was not made for " + report.attempt.text();
    // An earlier server may have ordered the attempt in one allocation, and this one in another.
    for (const auto& [other, attempt] : serves_)
      if (attempt == report.attempt && other != report.allocation)
        return "Slurm job " + std::to_string(other) + " serves " + report.attempt.text();
    serves_.insert_or_assign(report.allocation, report.attempt);
    const auto [known, first] = reports_.try_emplace(report.allocation);
    if (first || report.served >= known->second.served) known->second = std::move(report);
    return "";
  }

  // The reports since the last call, one of each allocation. From now on allocations that are not
  // among `open`, if it is given, do not begin attempts.
  std::vector<AllocationReport> take(
      std::optional<std::map<uint64_t, OpenAllocation>> open = std::nullopt) {
    std::vector<AllocationReport> reports;
    const MutexLock lock(mutex_);
    if (open) open_ = *std::move(open);
    std::erase_if(serves_,
                  [&](const auto& each) REQUIRES(mutex_) { return !open_.contains(each.first); });
    for (auto& [allocation, report] : std::exchange(reports_, {}))
      reports.push_back(std::move(report));
    return reports;
  }
  void open(uint64_t number, OpenAllocation allocation) {
    const MutexLock lock(mutex_);
    open_.insert_or_assign(number, std::move(allocation));
  }

  bool send(const AllocationOrder& order) {
    Send send;
    {
      const MutexLock lock(mutex_);
      send = send_;
    }
    return send && send(order);
  }

 private:
  Mutex mutex_;
  Send send_ GUARDED_BY(mutex_);
  std::map<uint64_t, OpenAllocation> open_ GUARDED_BY(mutex_);
  std::map<uint64_t, AllocationReport> reports_ GUARDED_BY(mutex_);
  // The attempts in open allocations, also while their agents are not linked.
  std::map<uint64_t, domain::AttemptId> serves_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::launch

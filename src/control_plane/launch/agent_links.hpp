// AgentLinks connects a launcher with the agents' links, which other modules own: agents report the
// attempt that their allocation runs, and idle agents get their next order (docs/decisions/38).
//
// It rejects an agent that reports an allocation in which it cannot run: on another machine, of
// another submitter, an ended one, or another one than its attempt has begun in. take() and
// report() exclude each other, so an attempt either begins in an allocation, or the launcher knows
// that it never will.
//
// Threads: report() and connect() from any; the others from the launcher's. Lifetime: outlives the
// launcher and all callers of report(); the sender outlives the launcher's last call.
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

// The report of a connected agent about its allocation. Its token was verified.
struct AllocationReport {
  uint64_t allocation = 0;  // Slurm's number of its job
  uint32_t served = 0;      // attempts that ran in it before this one
  domain::AttemptId attempt;
  std::string token;
  std::string machine;      // the attempt's machine in the ledger
  std::string submitter;    // the submitter of its job in the ledger
  bool begun = false;       // the agent has reported facts, so the attempt has begun here
  bool idle = false;        // the attempt ends, and the agent waits for an order
  bool keeps_host = false;  // if idle: a similar job may reuse the container and network
  Duration time_left{};     // if idle: the remaining time of the allocation
};

// An order for an idle agent; "" releases the allocation.
struct AllocationOrder {
  uint64_t allocation = 0;
  domain::AttemptId from;  // the attempt that the agent has run
  std::string order;
  bool same_host = false;  // true: the next attempt reuses the kept container
};

// An allocation in which agents may run.
struct OpenAllocation {
  std::string machine;      // "": not known yet
  domain::AttemptId first;  // the attempt for which it was requested
  // The user or role for whose attempts it was requested; "": not known.
  std::string submitter = {};
};

class AgentLinks {
 public:
  // Sends an order. Returns false if no such agent is connected.
  using Send = std::function<bool(const AllocationOrder&)>;

  void connect(Send send) {
    const MutexLock lock(mutex_);
    send_ = std::move(send);
  }

  // Keeps the newest report of each open allocation. Returns the reason to reject the agent; ""
  // accepts it. Reports of other allocations are not needed: these are new and run their first
  // attempt, or they end.
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
    // An earlier server may have sent the attempt to one allocation, and this server to another.
    for (const auto& [other, attempt] : serves_)
      if (attempt == report.attempt && other != report.allocation)
        return "Slurm job " + std::to_string(other) + " serves " + report.attempt.text();
    serves_.insert_or_assign(report.allocation, report.attempt);
    const auto [known, first] = reports_.try_emplace(report.allocation);
    if (first || report.served >= known->second.served) known->second = std::move(report);
    return "";
  }

  // Returns the reports since the last call, at most one for each allocation. If `open` is given,
  // other allocations no longer begin attempts.
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
  // The attempts in open allocations, including those whose agents are not connected.
  std::map<uint64_t, domain::AttemptId> serves_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::launch

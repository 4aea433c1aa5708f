// AgentLinks connects a launcher with the agents' links, which other modules own: agents report
// what their allocation serves, and an idle one gets its next order (docs/decisions/38).
//
// Threads: report() and connect() from any; the others from the launcher's. Lifetime: outlives the
// launcher and what calls report(); connect({}) before the sender ends.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::launch {

// What a linked agent says of its allocation. Its token was verified.
struct AllocationReport {
  uint64_t allocation = 0;  // Slurm's number of its job
  domain::AttemptId attempt;
  std::string token;
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

class AgentLinks {
 public:
  // Returns false if no such agent is linked; true: it is on its way.
  using Send = std::function<bool(const AllocationOrder&)>;

  void connect(Send send) {
    const MutexLock lock(mutex_);
    send_ = std::move(send);
  }
  void report(AllocationReport report) {
    const MutexLock lock(mutex_);
    reports_.push_back(std::move(report));
  }
  // The reports since the last call, in their order.
  std::vector<AllocationReport> take() {
    const MutexLock lock(mutex_);
    return std::exchange(reports_, {});
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
  std::vector<AllocationReport> reports_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::launch

// Orders the jobs of a queue with quota shares: within a share by priority; across shares, jobs
// that need only what their share owns before jobs that borrow; equals in the order of submission.
//
// Threads: confined to one. Private to this module.
#pragma once

#include <vector>

#include "schedule/order.hpp"
#include "schedule/quota.hpp"

namespace trainyard::schedule {

class QuotaOrder final : public QueueOrder {
 public:
  // Requires: all outlive it.
  QuotaOrder(const Snapshot& snapshot, size_t queue, std::vector<uint32_t> jobs,
             const Quotas& quotas);
  std::optional<uint32_t> next() override;
  void pop() override;
  void started(double cpus) override;

 private:
  struct Share {
    std::vector<uint32_t> jobs;
    size_t at = 0;
    bool borrows = false;  // its next job would borrow
  };
  // Recomputes share.borrows.
  void update_borrows(Share& share);

  const Snapshot& snapshot_;
  const Quotas& quotas_;
  std::vector<Share> shares_;
  size_t last_ = 0;
};

}  // namespace trainyard::schedule

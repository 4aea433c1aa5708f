// A line of quota shares: within a share the more urgent first; across shares, who stays within what is its share's own
// before who borrows, and of equals who was submitted first.
//
// Threads: confined to one. Private to this room.
#pragma once

#include <vector>

#include "schedule/order.hpp"
#include "schedule/quota.hpp"

namespace trainyard::schedule {

class QuotaOrder final : public LineOrder {
 public:
  // Requires: all outlive it.
  QuotaOrder(const Snapshot& snapshot, size_t line, std::vector<uint32_t> jobs, const Quotas& quotas);
  std::optional<uint32_t> next() override;
  void pop() override;
  void started(double cpus) override;

 private:
  struct Share {
    std::vector<uint32_t> jobs;
    size_t at = 0;
    bool borrows = false;  // its next job would
  };
  void look_at_next_of(Share& share);

  const Snapshot& snapshot_;
  const Quotas& quotas_;
  std::vector<Share> shares_;
  size_t last_ = 0;
};

}  // namespace trainyard::schedule

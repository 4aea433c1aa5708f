// Orders the jobs of a queue by fair share: next is a job of the share that has used least for its
// weight. The usage of a share is its past usage plus what it holds now, multiplied by the average
// duration of the queue's jobs, at most the window; starts of this plan count at once. (If it were
// always the window, a few hosts would outweigh the share's past for minutes; if it were nothing,
// one share would get everything that becomes free at once.)
//
// Backfill alone would undo this order, since small jobs fit where large ones do not. So a job
// whose share has used more than the share of the first waiting job starts before it only if it
// ends in time, not by using capacity that the first leaves.
//
// Threads: confined to one. Private to this module.
#pragma once

#include <queue>
#include <string_view>
#include <vector>

#include "schedule/order.hpp"

namespace trainyard::schedule {

// Counts the shares of the queue with waiting or running jobs.
size_t active_shares(const Snapshot& snapshot, size_t queue);
// Returns the part of its limits that a queue keeps for inactive shares: with a reservation of 0.5,
// a half while one share is active, a quarter while two are.
double kept_part(const FairShare& fair, size_t active);

class FairOrder final : public QueueOrder {
 public:
  FairOrder(const Snapshot& snapshot, size_t queue, std::vector<uint32_t> jobs);
  std::optional<uint32_t> next() override;
  void pop() override;
  void started(double cpus) override;
  void first_waits() override { first_ = last_; }
  bool ahead_of_first() const override;

 private:
  struct Share {
    double weight = 1;
    double had = 0;  // vCPU seconds
    std::vector<uint32_t> jobs;
    size_t at = 0;
  };
  struct Candidate {
    double weighed = 0;
    uint32_t job = 0;
    size_t share = 0;
    bool operator<(const Candidate& other) const {  // the greatest goes first
      return weighed != other.weighed ? weighed > other.weighed : job > other.job;
    }
  };

  double hold_seconds_;  // how long a job is expected to hold its hosts
  std::vector<Share> shares_;
  std::priority_queue<Candidate> candidates_;  // of all shares except last_
  std::optional<size_t> last_;                 // the share of the job that was popped last
  std::optional<size_t> first_;                // the share of the first job that waits for machines
};

}  // namespace trainyard::schedule

// Decides in which order jobs are planned. Queues of higher priority go first, queues of equal
// priority by the submission of their next job. Within a queue jobs go in the order of submission
// (below), of fair shares (fair_share.hpp) or of quota shares (quota_order.hpp).
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// The order of one queue. Jobs are indices in Snapshot::waiting.
class QueueOrder {
 public:
  virtual ~QueueOrder() = default;
  // Returns the next job; nothing when none is left. Repeated calls return the same job.
  virtual std::optional<uint32_t> next() = 0;
  // Removes the next job. Requires: next() returned one.
  virtual void pop() = 0;
  // Records that the job that was popped last has started, on hosts with this many vCPU.
  virtual void started(double cpus) = 0;
  // Records that the job that was popped last is the first that waits for machines.
  virtual void first_waits() {}
  // Returns true if the share of the job that was popped last has used more for its weight than the
  // share of the first waiting job: it may not use capacity that the first leaves.
  virtual bool ahead_of_first() const { return false; }
};

// Returns jobs in the order of submission.
class SubmissionOrder final : public QueueOrder {
 public:
  explicit SubmissionOrder(std::vector<uint32_t> jobs) : jobs_(std::move(jobs)) {}
  std::optional<uint32_t> next() override {
    return at_ == jobs_.size() ? std::nullopt : std::optional(jobs_[at_]);
  }
  void pop() override { ++at_; }
  void started(double) override {}

 private:
  std::vector<uint32_t> jobs_;
  size_t at_ = 0;
};

class Quotas;

class JobOrder {
 public:
  // Requires: both outlive it.
  JobOrder(const Snapshot& snapshot, const Quotas& quotas);

  // Returns the next job's index in snapshot.waiting; nullopt when all were returned.
  std::optional<uint32_t> next();
  // Records that the job that next() returned last has started.
  void started(double cpus);
  // Records that the job that next() returned last is the first that waits for machines.
  void first_waits();
  // Returns true if the job that next() returned last is in the same queue as the first waiting
  // job, and its share has used more for its weight. If it could take whatever the first cannot
  // use, small jobs would get more than their part forever.
  bool ahead_of_first() const;

 private:
  struct Candidate {
    int64_t priority = 0;
    uint32_t job = 0;
    size_t queue = 0;
    bool operator<(const Candidate& other) const {  // the greatest goes first
      return priority != other.priority ? priority < other.priority : job > other.job;
    }
  };
  void put_back();

  const Snapshot& snapshot_;
  std::vector<std::unique_ptr<QueueOrder>> orders_;  // by queue
  std::priority_queue<Candidate> candidates_;        // of all queues except last_
  std::optional<size_t> last_;
  std::optional<size_t> first_queue_;  // the queue of the first job that waits for machines
};

// Sorts the jobs of a share: higher priority first, equal ones in the order of submission.
void sort_by_urgency(std::vector<uint32_t>& jobs, const std::vector<WaitingJob>& waiting);

}  // namespace trainyard::schedule

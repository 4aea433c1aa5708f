// Whose turn it is. Lines of higher priority go first, equal ones by whose next job was submitted first; within a line
// its own order decides: in_order below, fair_share.hpp, or quota_order.hpp.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// The order of one line. Jobs are indices in Snapshot::waiting.
class LineOrder {
 public:
  virtual ~LineOrder() = default;
  // Who goes next; nothing: nobody is left. Asking twice gives the same.
  virtual std::optional<uint32_t> next() = 0;
  // It is decided upon. Requires: next() gave one.
  virtual void pop() = 0;
  // The one that was popped last has started, on hosts of that many vCPU.
  virtual void started(double cpus) = 0;
  // The one that was popped last is the first that waits for machines.
  virtual void first_waits() {}
  // Whoever was popped last has had enough for it not to take what the first leaves.
  virtual bool leads() const { return false; }
};

// In the order of submission.
class InOrder final : public LineOrder {
 public:
  explicit InOrder(std::vector<uint32_t> jobs) : jobs_(std::move(jobs)) {}
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

class Turns {
 public:
  // Requires: both outlive it.
  Turns(const Snapshot& snapshot, const Quotas& quotas);

  // The index of who goes next in snapshot.waiting; nothing: all were given.
  std::optional<uint32_t> next();
  // The one that next() gave last has started.
  void started(double cpus);
  // The one that next() gave last is the first that waits for machines.
  void first_waits();
  // The one that next() gave last shares a line with the first, and its share has had more for its weight: were it to
  // take whatever the first cannot use, small jobs would get more than their part, for ever.
  bool leads() const;

 private:
  struct Turn {
    int64_t priority = 0;
    uint32_t job = 0;
    size_t line = 0;
    bool operator<(const Turn& other) const {  // the greatest goes first
      return priority != other.priority ? priority < other.priority : job > other.job;
    }
  };
  void put_back();

  const Snapshot& snapshot_;
  std::vector<std::unique_ptr<LineOrder>> orders_;  // by line
  std::priority_queue<Turn> turns_;                 // of all lines but the last one
  std::optional<size_t> last_;
  std::optional<size_t> first_line_;  // of the first that waits for machines
};

// Jobs of a share: the more urgent first, and of equals in the order of submission.
void sort_by_urgency(std::vector<uint32_t>& jobs, const std::vector<Waiting>& waiting);

}  // namespace trainyard::schedule

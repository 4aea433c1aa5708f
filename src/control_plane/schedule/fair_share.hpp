// Fair share: next is whoever has had least for its weight. What a share has had is its usage of the past, and what it
// holds now for as long as jobs of the line last on the average, within the window; what this plan starts is in it at
// once. (Were it always the window, a share's few hosts would outweigh its past for minutes; were it nothing, all that
// becomes free at once would be one share's.)
//
// Backfill alone would undo that: small jobs find room where large ones do not. So whoever has had more than the share of
// the first that waits passes it only if it is over in time, not by taking what the first leaves.
//
// Threads: confined to one. Private to this room.
#pragma once

#include <queue>
#include <string_view>
#include <vector>

#include "schedule/order.hpp"

namespace trainyard::schedule {

// Shares of the line of which somebody waits or runs.
size_t active_shares(const Snapshot& snapshot, size_t line);
// What part of its limits a line keeps for shares that are not active: 0.5 keeps a half while one is active, a quarter
// while two are.
double kept_part(const FairShare& fair, size_t active);

class FairOrder final : public LineOrder {
 public:
  FairOrder(const Snapshot& snapshot, size_t line, std::vector<uint32_t> jobs);
  std::optional<uint32_t> next() override;
  void pop() override;
  void started(double cpus) override;
  void first_waits() override { first_ = last_; }
  bool leads() const override;

 private:
  struct Share {
    double weight = 1;
    double had = 0;  // vCPU seconds
    std::vector<uint32_t> jobs;
    size_t at = 0;
  };
  struct Turn {
    double weighed = 0;
    uint32_t job = 0;
    size_t share = 0;
    bool operator<(const Turn& other) const {  // the greatest goes first
      return weighed != other.weighed ? weighed > other.weighed : job > other.job;
    }
  };

  double hold_seconds_;  // for which a job is expected to hold what it has
  std::vector<Share> shares_;
  std::priority_queue<Turn> turns_;  // of all shares but the last one
  std::optional<size_t> last_;       // whose job was popped
  std::optional<size_t> first_;      // whose job is the first that waits for machines
};

}  // namespace trainyard::schedule

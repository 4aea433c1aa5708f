// A Trainer trains one model on all hosts of a job. In every step, each rank computes the gradient
// of the rows of the batch that belong to its host, and all ranks apply the sum over all ranks.
//
// The rows of a batch depend on seed, epoch and row numbers in the whole data set (shards.hpp), not
// on the hosts. So one host and eight hosts sum the same rows. These sums are exact (mlp.hpp), so
// both train the same model: bit for bit on machines whose exp, log, sin and cos round in the same
// way, else up to that rounding.
//
// With regions (settings.regions) this applies within each region: the group and the rows are those
// of the region, and after every settings.regions.steps steps its first rank, the leader, averages
// with the leaders of the other regions. Then the model also depends on the number of regions, and
// on when which of them failed; if these are equal, so are the bits.
//
// Threads: confined to one thread; `stop` may be set from any thread, also from a signal handler.
// Errors:  those of the group, if a rank is lost; invalid, if the rows do not fit the settings.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "local_sgd/local_sgd.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"
#include "train/shards.hpp"

namespace trainyard::train {

// The number of steps of the largest training: kRowsMax rows in kEpochsMax epochs.
inline constexpr int64_t kStepsMax = int64_t(kRowsMax) * kEpochsMax;
// Returns the number of steps after `rounds` rounds of `steps_of_round`, at most `steps`. `rounds`
// may come from another region and have any value.
int64_t steps_after(uint64_t rounds, int64_t steps_of_round, int64_t steps);

class Trainer {
 public:
  // All ranks call it with equal settings. `print` gets log lines without newline, which people and
  // metric regexes read; rank 0 prints for all. `regions` is required if settings.regions.any();
  // only rank 0, the leader, uses it.
  // Errors: invalid.
  static Result<Trainer> make(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
                              std::function<void(std::string_view line)> print,
                              std::optional<local_sgd::LocalSgdOptions> regions = {});

  // Trains to the end, or until `stop` is set on any rank: then all ranks end after the same step.
  // Returns true at the end, false after a stop.
  Result<bool> run(const std::atomic<bool>& stop);

  // Returns the model after the last completed step; also valid after run() has failed.
  const Model& model() const { return model_; }
  int64_t steps_done() const { return steps_done_; }
  // Returns the bytes between regions on the leader; 0 on other ranks.
  local_sgd::RegionTraffic traffic() const;

 private:
  Trainer(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
          std::function<void(std::string_view line)> print);

  struct Progress {
    double loss = 0;
    double correct = 0;
    double rows = 0;
    std::chrono::nanoseconds began{};
  };
  // The result of an averaging round, which the leader broadcasts to the other ranks of its region.
  struct RoundResult {
    uint64_t round = 0;
    int64_t steps = 0;
    int64_t regions = 0;
    bool stopped = false;
  };
  // Trains one batch. Returns true if `stop` was set on any rank.
  Result<bool> step(std::span<const uint32_t> batch, int64_t epoch, bool stop, Progress& progress);
  void add_row(uint64_t row, int64_t epoch, std::span<double> gradient, Progress& progress);
  void print_begin();
  Result<void> print_epoch(int64_t epoch, const Progress& progress);
  Result<void> join_regions(local_sgd::LocalSgdOptions options);
  // All ranks of the region call it. Returns true if the leader was stopped while it waited.
  Result<bool> average_regions();
  Result<bool> apply(RoundResult result);
  Result<void> leave_regions();
  // Checks that all ranks have the same bits. Errors: internal.
  Result<void> compare_ranks();

  const Settings settings_;
  const Rows rows_;
  collectives::Group& group_;
  Clock& clock_;
  const std::function<void(std::string_view line)> print_;
  Model model_;
  Optimizer optimizer_;
  int64_t batches_ = 0;  // per epoch
  int64_t steps_ = 0;
  int64_t steps_done_ = 0;
  std::unique_ptr<local_sgd::LocalSgd> regions_;  // on the leader only
  double rows_since_round_ = 0;
  Workspace workspace_;
  std::vector<double> sums_;  // the gradient, then the other sums over ranks
  std::vector<float> gradient_;
  std::vector<float> input_;  // a scaled row
  std::vector<float> moved_;  // the same after augmentation
};

}  // namespace trainyard::train

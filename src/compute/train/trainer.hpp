// Trains one model on all hosts of a job at once: every step, each rank computes the gradient of those rows
// of the batch that it owns; the sum over all ranks moves everyone's parameters alike.
//
// Which rows make a batch is a function of seed, epoch and the rows' numbers in the whole (shards.hpp), not
// of the hosts. So one host and eight hosts sum the same rows; and since these sums are exact (mlp.hpp), they
// learn the same model, bit for bit on machines whose exp, log, sin and cos round alike, else up to that
// rounding.
//
// In regions (settings.regions) that holds inside each: the group is the region's, its rows are the region's, and after
// every so many steps its first rank, the leader, averages with the leaders of the other regions. What is learned then
// depends on the number of regions, and on which of them vanished when; with the same ones it is the same, bit for bit.
//
// Threads: confined to one thread; `stop` may be set from anywhere, a signal handler too.
// Errors:  of the group, when a rank is lost; invalid, when rows do not fit the settings.
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
#include "local_sgd/regions.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"
#include "train/shards.hpp"

namespace trainyard::train {

// Of one training: as many as the most rows and epochs can make.
inline constexpr int64_t steps_max = int64_t(rows_max) * epochs_max;
// Where a region is of `steps` in all, after so many rounds of `steps_of_round`; another region says how many.
int64_t steps_after(uint64_t rounds, int64_t steps_of_round, int64_t steps);

class Trainer {
 public:
  // All ranks make theirs with equal settings. Errors: invalid.
  // `print` gets lines for people and metric regexes, without newline; rank 0 speaks for all.
  // `regions`, where settings.regions.any(): how the leader of ours meets the others; used by rank 0 alone.
  static Result<Trainer> make(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
                              std::function<void(std::string_view line)> print,
                              std::optional<local_sgd::RegionOptions> regions = {});

  // Trains to the end, or until a rank was told to stop: then all ranks end after the same step.
  // Answers whether it came to the end.
  Result<bool> run(const std::atomic<bool>& stop);

  // After the last step that was finished; also after run() failed.
  const Model& model() const { return model_; }
  int64_t steps_done() const { return steps_done_; }
  // Between regions, at the leader; else nothing.
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
  // What a leader tells the other ranks of its region after it met, or tried to meet, other leaders.
  struct Met {
    uint64_t round = 0;
    int64_t steps = 0;
    int64_t regions = 0;
    bool stopped = false;
  };
  // One batch. True when some rank wants to stop.
  Result<bool> step(std::span<const uint32_t> batch, int64_t epoch, bool stop, Progress& progress);
  void add_row(uint64_t row, int64_t epoch, std::span<double> gradient, Progress& progress);
  void say_begin();
  Result<void> say_epoch(int64_t epoch, const Progress& progress);
  Result<void> join_regions(local_sgd::RegionOptions options);
  // All ranks of the region. True when the leader was told to stop while it waited.
  Result<bool> meet_regions();
  Result<bool> follow(Met met);
  Result<void> leave_regions();
  // That all ranks hold the same bits. Errors: internal.
  Result<void> compare_ranks();

  const Settings settings_;
  const Rows rows_;
  collectives::Group& group_;
  Clock& clock_;
  const std::function<void(std::string_view line)> print_;
  Model model_;
  Optimizer optimizer_;
  int64_t batches_ = 0;  // in an epoch
  int64_t steps_ = 0;
  int64_t steps_done_ = 0;
  std::unique_ptr<local_sgd::Regions> regions_;  // the leader's
  double rows_since_meeting_ = 0;
  Workspace workspace_;
  std::vector<double> sums_;  // the gradient, then what else is summed over ranks
  std::vector<float> gradient_;
  std::vector<float> input_;  // a row, scaled
  std::vector<float> moved_;  // and moved
};

}  // namespace trainyard::train

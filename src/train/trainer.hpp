// Trains one model on all hosts of a job at once: every step, each rank computes the gradient of those rows
// of the batch that it owns; the sum over all ranks moves everyone's parameters alike.
//
// Which rows make a batch is a function of seed, epoch and the rows' numbers in the whole (shards.hpp), not
// of the hosts. So one host and eight hosts sum the same rows; and since these sums are exact (mlp.hpp), they
// learn the same model, bit for bit on machines whose exp, log, sin and cos round alike, else up to that
// rounding.
//
// Threads: confined to one thread; `stop` may be set from anywhere, a signal handler too.
// Errors:  of the group, when a rank is lost; invalid, when rows do not fit the settings.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"
#include "train/shards.hpp"

namespace trainyard::train {

class Trainer {
 public:
  // All ranks make theirs with equal settings. Errors: invalid.
  // `print` gets lines for people and metric regexes, without newline; rank 0 speaks for all.
  static Result<Trainer> make(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
                              std::function<void(std::string_view line)> print);

  // Trains to the end, or until a rank was told to stop: then all ranks end after the same step.
  // Answers whether it came to the end.
  Result<bool> run(const std::atomic<bool>& stop);

  // After the last step that was finished; also after run() failed.
  const Model& model() const { return model_; }
  int64_t steps_done() const { return steps_done_; }

 private:
  Trainer(Settings settings, Rows rows, collectives::Group& group, Clock& clock,
          std::function<void(std::string_view line)> print);

  struct Progress {
    double loss = 0;
    double correct = 0;
    double rows = 0;
  };
  // One batch. True when some rank wants to stop.
  Result<bool> step(std::span<const uint32_t> batch, int64_t epoch, bool stop, Progress& progress);
  void add_row(uint64_t row, int64_t epoch, std::span<double> gradient, Progress& progress);
  // That all ranks hold the same bits. Errors: internal.
  Result<void> compare_ranks();

  const Settings settings_;
  const Rows rows_;
  collectives::Group& group_;
  Clock& clock_;
  const std::function<void(std::string_view line)> print_;
  Model model_;
  Optimizer optimizer_;
  int64_t steps_ = 0;
  int64_t steps_done_ = 0;
  Workspace workspace_;
  std::vector<double> sums_;  // the gradient, then what else is summed over ranks
  std::vector<float> gradient_;
  std::vector<float> input_;  // a row, scaled
  std::vector<float> moved_;  // and moved
};

}  // namespace trainyard::train

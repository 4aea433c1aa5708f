// Trains a classifier on all hosts of a job.
//
// In each step every rank computes the gradients of its parts, which are batches of mini_batch_size
// images. Gradients are summed over the ranks while the backward pass continues, and all ranks
// apply the mean. The images of a part do not depend on the number of ranks (order.hpp), so one
// rank with two parts trains the same model as two ranks with one part each, bit for bit
// (data_parallel.hpp).
//
// The next batch is read on another thread. The trainer prints the log lines of SageMaker's
// algorithm.
//
// Threads: confined to one; `stop` may be set from anywhere. Errors: those of the group, the images
// and the caller's `save`; invalid, when the loss is not finite, naming step, rate and batch.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/image_classification/batches.hpp"
#include "algorithms/image_classification/early_stopping.hpp"
#include "algorithms/image_classification/order.hpp"
#include "algorithms/image_classification/resnet.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/schedule.hpp"

namespace trainyard::algorithms {

// The images of a channel, and which of them this rank reads.
struct Channel {
  images::Collection collection;
  Shares shares;
};

struct TrainerOptions {
  ClassifierSettings settings;
  uint64_t seed = 1;
  int64_t parts = 1;  // batches of each rank in one step
  std::function<void(std::string_view line)> print;
  // Saves the network; called on rank 0. checkpoint_epoch is 0 for the best network so far, else
  // the epoch of a checkpoint (checkpoint_frequency).
  std::function<Result<void>(const ResNet& network, int64_t checkpoint_epoch)> save;
};

// a log line is printed after this number of batches
inline constexpr int64_t kBatchesPerLine = 20;

class ClassifierTrainer {
 public:
  // All ranks call it, with equal options.
  static Result<std::unique_ptr<ClassifierTrainer>> make(TrainerOptions options, Channel train,
                                                         std::optional<Channel> validation,
                                                         std::unique_ptr<ResNet> network,
                                                         collectives::Group& group, Clock& clock);
  ~ClassifierTrainer();

  // Trains to the end, or until `stop` is set on any rank: then all ranks end after the same step.
  Result<void> run(const std::atomic<bool>& stop);

  const ResNet& network() const { return *network_; }
  int64_t steps_done() const { return steps_done_; }
  // Returns the accuracy after the last epoch; nothing without a validation channel.
  std::optional<double> validation_accuracy() const { return validation_accuracy_; }

 private:
  struct Progress {
    double loss = 0, correct = 0, correct_k = 0, images = 0;
    std::chrono::nanoseconds began{};
  };
  struct Position {
    int64_t epoch = 0, step = 0, part = 0;
  };

  ClassifierTrainer(TrainerOptions options, Channel train, std::optional<Channel> validation,
                    std::unique_ptr<ResNet> network, collectives::Group& group, Clock& clock);

  Result<Batch> read(Position position);
  Result<Batch> next_batch(Position position);
  std::optional<Position> after(Position position) const;
  Result<bool> step(int64_t epoch, int64_t step, bool stop, Progress& progress);
  Result<void> add_part(const Batch& batch, Progress& own);
  Result<void> check_loss(double loss, int64_t epoch, double rate) const;
  Result<bool> end_epoch(int64_t epoch, const Progress& progress);
  Result<double> score();
  Result<void> save_if_due(int64_t epoch, bool best);
  void print_batch(int64_t epoch, int64_t step, const Progress& progress);
  void print(const std::string& line) const;

  const TrainerOptions options_;
  const Channel train_;
  const std::optional<Channel> validation_;
  const std::unique_ptr<ResNet> network_;
  collectives::Group& group_;
  Clock& clock_;
  std::unique_ptr<parallel::DataParallel> parallel_;
  std::unique_ptr<parallel::Optimizer> optimizer_;
  parallel::Schedule schedule_;
  int64_t steps_of_epoch_ = 0;
  int64_t steps_done_ = 0;
  std::optional<double> validation_accuracy_;
  double best_accuracy_ = -1;  // none yet
  EarlyStopping early_stopping_;
  std::optional<EpochOrder> order_;  // of order_epoch_; used by the reading thread only
  int64_t order_epoch_ = -1;
  std::string last_batch_;  // for errors
  std::future<Result<Batch>> ahead_;
};

}  // namespace trainyard::algorithms

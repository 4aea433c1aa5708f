// Trains one model on the rows of all hosts, round by round.
//
// After each round the first host prints the metrics in the format of SageMaker's log and saves a
// checkpoint, and the hosts agree whether to stop.
//
// Threads: confined to one, which is connected to the other hosts (library/communicator.hpp).
// Errors: invalid, with the library's message; those of the group, naming a host.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "boosting/library/booster.hpp"
#include "boosting/settings.hpp"
#include "collectives/group.hpp"

namespace trainyard::boosting {

using Print = std::function<void(std::string_view line)>;

// The state from which training starts.
struct TrainingStart {
  std::string model;        // "": none
  int64_t rounds_done = 0;  // rounds of this job that are in the model
};

struct TrainerOptions {
  const BoostingSettings& settings;
  collectives::Group& group;
  const std::atomic<bool>& stop;
  Print print;  // called on the first host only
  int threads = 1;
  // Saves the model after a round; called on the first host. May be empty.
  std::function<Result<void>(int64_t round, const std::string& model)> save_checkpoint;
};

struct TrainedModel {
  std::string model;
  std::vector<Evaluation> evaluations;  // of the last round
  int64_t rounds = 0;                   // rounds that this job trained
  bool stopped = false;                 // `stop` ended the training
};

// Trains a model. `validation` may be null.
Result<TrainedModel> train_model(const TrainerOptions& options, const DataMatrix& train,
                                 const DataMatrix* validation, const TrainingStart& start);

// Returns "[3]#011train-rmse:1.50000#011validation-rmse:2.00000": SageMaker's logs have #011 for a
// tab.
std::string metric_line(int64_t round, const std::vector<Evaluation>& evaluations);

}  // namespace trainyard::boosting

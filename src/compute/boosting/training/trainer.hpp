// Trains one model on the rows of all hosts, round by round.
//
// After each round the metrics are printed by the first host in the form of SageMaker's log, a
// checkpoint is saved, and the hosts agree whether to stop.
//
// Threads: confined to one, which is connected to the other hosts (library/communicator.hpp).
// Errors: invalid, with the library's message; of the group, naming a host.
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

// Where training begins.
struct TrainingStart {
  std::string model;        // "": without one
  int64_t rounds_done = 0;  // of this job, which are in the model
};

struct TrainerOptions {
  const BoostingSettings& settings;
  collectives::Group& group;
  const std::atomic<bool>& stop;
  Print print;  // called on the first host only
  int threads = 1;
  // Saves the model after a round; the first host calls it. May be empty.
  std::function<Result<void>(int64_t round, const std::string& model)> save_checkpoint;
};

struct TrainedModel {
  std::string model;
  std::vector<Evaluation> evaluations;  // of the last round
  int64_t rounds = 0;                   // of this job that were trained
  bool stopped = false;                 // by `stop`
};

// `validation` may be null.
Result<TrainedModel> train_model(const TrainerOptions& options, const DataMatrix& train,
                                 const DataMatrix* validation, const TrainingStart& start);

// "[3]#011train-rmse:1.50000#011validation-rmse:2.00000": SageMaker's logs have #011 for a tab.
std::string metric_line(int64_t round, const std::vector<Evaluation>& evaluations);

}  // namespace trainyard::boosting

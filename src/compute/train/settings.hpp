// Parses the hyperparameters of a training: their names and limits are one table (settings.cpp).
//
// Threads: plain values, pure functions. Errors: invalid, naming the hyperparameter and its valid
// values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "local_sgd/local_sgd.hpp"
#include "train/optimizer.hpp"

namespace trainyard::train {

// Options of training in regions that are connected by slow links: each region trains separately,
// and all average after every `steps` steps.
struct LocalSgdSettings {
  // The number of regions into which the job's hosts are split, in their order. 1: no regions.
  int64_t count = 1;
  int64_t steps = 100;  // between two averaging rounds
  local_sgd::OuterSettings outer;
  local_sgd::Coding coding = local_sgd::Coding::bf16;
  int64_t port = 7840;  // port of the leaders of regions
  // Set if the whole job is one region, and the other regions are other jobs, on this server or
  // elsewhere: the endpoints of the first host of each job, the index of this region among them,
  // and the shared secret.
  std::vector<collectives::Endpoint> leaders;
  int64_t own = 0;
  std::string secret;
  bool encrypt = false;  // encrypts the links between leaders

  bool any() const { return count > 1 || !leaders.empty(); }
  int64_t all() const { return leaders.empty() ? count : int64_t(leaders.size()); }
};

inline constexpr int64_t kEpochsMax = 1'000'000;

struct Settings {
  std::string channel = "train";  // the channel with the training data
  int64_t epochs = 60;
  // rows per step on all hosts together, so the number of hosts does not change the model
  int64_t batch_size = 64;
  int64_t hidden = 64;         // units
  int64_t classes = 0;         // 0: one more than the largest label
  float learning_rate = 0.1f;  // at the first step; decreases to 0 along half a cosine
  OptimizerSettings optimizer;
  uint64_t seed = 1;
  float input_scale = 16.0f;  // features are divided by it; values of 0 .. 1 train well
  // Augmentation of rows that are images of image_width pixels per line: each is shifted and
  // rotated a little, differently in every epoch. 0: rows are used unchanged.
  int64_t image_width = 0;  // pixels
  float shift = 0.0f;       // maximum shift in pixels, in each direction
  float rotate = 0.0f;      // maximum rotation in degrees, in each direction
  int64_t port = 7830;      // port of the ranks of the job
  LocalSgdSettings regions;
};

// Values may be plain or quoted as JSON ("\"adam\"", as the SageMaker SDK sends them). The names of
// the SDK (sagemaker_..) are ignored; any other unknown name is an error.
Result<Settings> parse_settings(const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::train

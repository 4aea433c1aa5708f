// What a user may say of a training, as hyperparameters: names and limits in one table (settings.cpp).
//
// Threads: plain values, pure functions. Errors: invalid, naming the hyperparameter and what it may be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "local_sgd/regions.hpp"
#include "train/optimizer.hpp"

namespace trainyard::train {

// How hosts that slow links part train together: each region by itself, with a meeting of all after `steps` steps.
struct RegionSettings {
  // The hosts of this job are cut into so many regions, in their order. 1: all hosts step together.
  int64_t count = 1;
  int64_t steps = 100;  // between two meetings
  local_sgd::OuterSettings outer;
  local_sgd::Coding coding = local_sgd::Coding::bf16;
  int64_t port = 7840;  // where the leaders of regions meet
  // Or this whole job is one region, and the others are other jobs, here or elsewhere: where the first host of each is
  // reached, which of them we are, and a secret that all of them know.
  std::vector<collectives::Endpoint> leaders;
  int64_t own = 0;
  std::string secret;
  bool encrypt = false;  // what the leaders say to each other

  bool any() const { return count > 1 || !leaders.empty(); }
  int64_t all() const { return leaders.empty() ? count : int64_t(leaders.size()); }
};

inline constexpr int64_t epochs_max = 1'000'000;

struct Settings {
  std::string channel = "train";  // whose shards are learned from
  int64_t epochs = 60;
  int64_t batch_size = 64;     // of all hosts together: more hosts do not change what is learned
  int64_t hidden = 64;         // units
  int64_t classes = 0;         // 0: one more than the largest label
  float learning_rate = 0.1f;  // at the first step; falls to nothing along half a cosine
  OptimizerSettings optimizer;
  uint64_t seed = 1;
  float input_scale = 16.0f;  // features are divided by it: about 0 .. 1 learns well
  // For rows that are images of image_width pixels a line: each is moved and turned a little, anew in every
  // epoch, so that the few images there are stand for many. 0: rows are taken as they are.
  int64_t image_width = 0;  // pixels
  float shift = 0.0f;       // up to so many pixels, each way
  float rotate = 0.0f;      // up to so many degrees, each way
  int64_t port = 7830;      // where the ranks of one job meet
  RegionSettings regions;
};

// Values may be plain or quoted as JSON ("\"adam\"", as SageMaker's SDK sends them). Its own names
// (sagemaker_..) are passed over; any other unknown name is an error.
Result<Settings> parse_settings(const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::train

// What a job's hosts move just now: channels, images, models. Of the moment: nothing of it is kept.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::gateway {

struct HostProgress {
  domain::HostIndex host = 0;
  std::string what;  // "channel train", "image", "model"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // 0: not known
  bool finished = false;
};

// By host; each thing's last word.
using FindProgress = std::function<std::vector<HostProgress>(domain::JobNumber)>;

}  // namespace trainyard::gateway

// Describes the present transfers of a job's hosts: channels, images, models. Transient: nothing of
// it is stored.
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
  uint64_t total_bytes = 0;  // 0: unknown
  bool finished = false;
};

// By host; the last report of each transfer.
using FindProgress = std::function<std::vector<HostProgress>(domain::JobNumber)>;

}  // namespace trainyard::gateway

// Describes the current transfers of a job's hosts (channels, images, models), when the hosts were
// last active, and what slows them down. These values are not stored.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "diagnosis/rank_faults.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

struct HostProgress {
  domain::HostIndex host = 0;
  std::string what;  // "channel train", "image", "model"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // 0: unknown
  bool finished = false;
};

// Returns the last report of each transfer, ordered by host.
using FindProgress = std::function<std::vector<HostProgress>(domain::JobNumber)>;

// Tells when a host and its ranks were last active, as ages.
struct HostActivity {
  domain::HostIndex host = 0;
  wire::Activity activity;
  std::vector<diagnosis::RankFault> faults = {};  // the current faults of its ranks
};

// Returns the hosts that have reported, ordered by host.
using FindActivity = std::function<std::vector<HostActivity>(domain::JobNumber)>;

}  // namespace trainyard::gateway

// One host's part of a training job, under the job contract: reads what the platform laid below /opt/ml,
// meets the other hosts, trains, leaves the model.
//
//   input/config/hyperparameters.json, resourceconfig.json   what to do, and with whom
//   input/data/CHANNEL/...                                   this host's shards
//   model/                                                   the model, from the first host alone
//   output/failure                                           why it failed, when it did
//
// Threads: confined to one. Errors: as values; the failure file is written before they are returned.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::train {

struct JobOptions {
  std::string base;          // /opt/ml
  std::string shared_value;  // the same on all hosts of the job, another in every other job: its ARN
};

// After `stop` was set, all hosts end after the same step and the first one leaves the model so far: that is
// success. A host that hears nothing from the others for stop_timeout after that goes alone.
inline constexpr Duration stop_timeout =
    30s;  // of the 120 s that the contract gives between SIGTERM and SIGKILL

Result<void> run_job(const JobOptions& options, Clock& clock, const std::atomic<bool>& stop,
                     const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::train

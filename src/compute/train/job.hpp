// Runs one host's part of a training job under the job contract: reads the configuration and data
// below /opt/ml, joins the other hosts, trains, saves the model.
//
//   input/config/hyperparameters.json, resourceconfig.json   the hyperparameters and the hosts
//   input/data/CHANNEL/...                                   the shards of this host
//   model/                                                   the model; the first host writes it
//   output/failure                                           the reason of a failure
//
// Threads: confined to one. Errors: returned as values; the failure file is written before.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::train {

struct JobOptions {
  std::string base;           // /opt/ml
  std::string shared_value;   // a secret of this job, equal on all of its hosts: its ARN
  std::string activity = {};  // the activity table of its host; "": none
  // The directory for a trace of this host's collectives, HOST.json; "": no trace is written.
  std::string timelines = {};
};
// The environment variable with that directory.
inline constexpr const char* kTimelinesVariable = "TRAINYARD_TIMELINES";

// After `stop` is set, all hosts end after the same step, and the first one saves the model so far;
// the job succeeds. A host that cannot agree with the others within kStopTimeout ends without them.
// (The contract gives 120 s between SIGTERM and SIGKILL.)
inline constexpr Duration kStopTimeout = 30s;

Result<void> run_job(const JobOptions& options, Clock& clock, const std::atomic<bool>& stop,
                     const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::train

// Runs one host's part of an XGBoost job under the job contract.
//
//   channels  train        rows with labels: csv, libsvm or recordio-protobuf, in File, FastFile or
//                          Pipe mode; ShardedByS3Key, or divided among hosts that all have them
//             validation   rows on which each round is evaluated
//             model        xgboost-model, with which training continues
//   model/                 xgboost-model, or xgboost-model-N of a cross validation; the
//                          first host writes them
//   checkpoints            the last rounds, with which an interrupted job resumes
//   output/failure         the reason of a failure
//
// Several hosts join rabit's tracker (rabit/tracker.hpp) on the first one.
//
// Threads: confined to one. Errors: returned as values; the failure file is written before.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::boosting {

struct BoostingJobOptions {
  std::string base;           // /opt/ml
  std::string shared_value;   // a secret of this job, equal on all of its hosts: its ARN
  std::string activity = {};  // the activity table of its host; "": none
  int cpus = 1;               // processors of this machine
  uint64_t memory = 0;        // bytes of this host; 0: unknown
};

// The ports on which the hosts of a job listen, and the tracker, as in SageMaker's images.
inline constexpr uint16_t kBoostingPort = 7834;
inline constexpr uint16_t kTrackerPort = 9099;
// After `stop` is set, training ends after the current round. A host that cannot agree with the
// others within this time ends without them. (SageMaker sends SIGKILL 120 s after SIGTERM.)
inline constexpr Duration kBoostingStopTimeout = 60s;
// Hosts first communicate after reading their channels, and reading may take as long as a job may
// run.
inline constexpr Duration kBoostingPeerTimeout = 24h * 28;

Result<void> run_boosting_job(const BoostingJobOptions& options, Clock& clock,
                              const std::atomic<bool>& stop,
                              const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::boosting

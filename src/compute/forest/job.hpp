// Runs one host's part of a job of a random cut forest under the job contract.
//
//   channels  train   rows: text/csv or application/x-recordio-protobuf, in File, FastFile or Pipe
//                     mode; ShardedByS3Key, or the same on all hosts
//             test    rows with labels, 1 for an anomaly, on all hosts: metrics are printed
//   model/            random-cut-forest.model; the first host writes it
//   output/failure    the reason of a failure
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

namespace trainyard::forest {

struct ForestJobOptions {
  std::string base;           // /opt/ml
  std::string shared_value;   // a secret of this job, equal on all of its hosts: its ARN
  std::string activity = {};  // the activity table of its host; "": none
  int cpus = 1;               // this machine's processors
  uint64_t memory = 0;        // of this machine, in bytes; 0: unknown
};

// On which the ranks of a job listen.
inline constexpr uint16_t kForestPort = 7832;
// After `stop` is set, hosts end reading, and the model of the rows so far is saved. A host that
// cannot agree with the others within this time ends alone.
inline constexpr Duration kForestStopTimeout = 60s;  // SageMaker sends SIGKILL 120 s after SIGTERM
// Reading a channel may take as long as a job may run, and hosts do not wait for each other before.
inline constexpr Duration kForestPeerTimeout = 24h * 28;

Result<void> run_forest_job(const ForestJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop,
                            const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::forest

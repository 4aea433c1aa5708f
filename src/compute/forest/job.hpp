// Runs one host's part of a random cut forest job under the job contract.
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
  int cpus = 1;               // processors of this machine
  uint64_t memory = 0;        // bytes of this machine; 0: unknown
};

// The port on which the ranks of a job listen.
inline constexpr uint16_t kForestPort = 7832;
// After `stop` is set, hosts stop reading, and the model of the rows read so far is saved. A host
// that cannot agree with the others within this time ends without them.
inline constexpr Duration kForestStopTimeout = 60s;  // SageMaker sends SIGKILL 120 s after SIGTERM
// Hosts first communicate after reading their channels, and reading may take as long as a job may
// run.
inline constexpr Duration kForestPeerTimeout = 24h * 28;

Result<void> run_forest_job(const ForestJobOptions& options, Clock& clock,
                            const std::atomic<bool>& stop,
                            const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::forest

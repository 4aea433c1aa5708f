// LogFollower reads a job's log from the API, round by round, each line once.
//
// Threads: confined to one. Errors: the client's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/job_view.hpp"
#include "cli/log_reader.hpp"

namespace trainyard::cli {

class LogFollower {
 public:
  virtual ~LogFollower() = default;
  // Reads the log, and calls `each` with the new lines. `ended`: the job has ended, and this is the
  // last round.
  virtual Result<void> round(bool ended, const LineSink& each) = 0;
  // Returns the width of the widest label so far.
  virtual int widest() const = 0;
};

struct LogChoice {
  std::optional<uint32_t> host;  // only this host, or node of a Batch job; nothing = all
  std::optional<Instant> since;
};

// Follows a job of SageMaker, a job of Batch, the nodes of a multi-node parallel job, or the
// children of an array. For an array, the first round reads the logs of the failed children, then
// of the others, one child after the other; later rounds merge the new lines of running children.
// Errors: invalid, if a host of an array is requested.
Result<std::unique_ptr<LogFollower>> follow_log(client::Client& client, const JobView& job,
                                                const LogChoice& choice);

}  // namespace trainyard::cli

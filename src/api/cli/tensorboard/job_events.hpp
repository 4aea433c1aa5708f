// JobEvents reads the metrics of a training job from the API, and returns them as records of an
// event file: new ones with each call while the job runs.
//
// A record is the average of a metric over a period. The period is the shortest one with which the
// first call returns at most kPointsMax records. A record's step is the number of the metric's
// values until then, so the x axis is the same as in the console. A period is read kLateValues
// after its end.
//
// Threads: confined to one. Errors: those of the client; nothing is lost, and next() may be called
// again. Lifetime: the client outlives it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "client/client.hpp"
#include "objects/objects.hpp"

namespace trainyard::cli::tensorboard {

inline constexpr int64_t kPointsMax = 20'000;  // of a metric, at the first call
inline constexpr int64_t kPointsOfAnswerMax = 1440;
inline constexpr Duration kLateValues = 5s;

class JobEvents {
 public:
  JobEvents(client::Client& client, std::string job) : client_(client), job_(std::move(job)) {}

  // Returns the records since the last call; "" if there are none.
  Result<std::string> next(Instant now);
  // Returns whether the job has ended, and all of its records were returned.
  bool ended() const { return ended_; }
  // Returns the location of the job's own files for TensorBoard; unset before the first next(), and
  // if the job has no TensorBoardOutputConfig.
  const std::optional<objects::Location>& own_files() const { return own_files_; }

 private:
  struct Progress {
    Instant read;       // all periods before it were returned
    int64_t steps = 0;  // values that were returned
  };
  Result<void> start(const Json& job, Instant until);
  Result<std::vector<std::string>> metrics();
  Result<void> read(const std::string& metric, Progress& progress, Instant until);

  client::Client& client_;
  const std::string job_;
  std::optional<Instant> first_;  // the start of the first period; unset before the first next()
  Duration period_ = 1s;
  std::map<std::string, Progress> progress_;
  std::string records_;  // not yet returned by next()
  bool ended_ = false;
  std::optional<objects::Location> own_files_;
};

}  // namespace trainyard::cli::tensorboard

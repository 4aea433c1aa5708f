// Describes the request and the report of a replay of past jobs (replayer.hpp).
//
// Threads: plain values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "reconcile/replay_view.hpp"
#include "schedule/replay/replay.hpp"

namespace trainyard::control {

inline constexpr size_t kReplayAffectedMax = 100;  // jobs in a report

struct ReplayRequest {
  std::string region;
  Instant begin, end;  // wall time
  std::vector<schedule::ReplayVariant> variants;
  size_t affected_max = 20;
};

struct AffectedJob {
  domain::JobKey key;
  std::vector<std::optional<Duration>> waits;  // in the order of the outcomes
};

struct ReplayReport {
  std::string id;  // the parameter of resume_replay()
  bool done = false;
  double progress = 0;  // 0 to 1
  // The following are set when it is done.
  Instant begin = {}, end = {};
  size_t jobs = 0, counted = 0;  // counted: submitted within the period
  reconcile::ReplayCounts counts = {};
  std::vector<schedule::ReplayOutcome> outcomes = {};
  std::vector<AffectedJob> affected = {};
};

struct ReplayCaller {
  std::string principal;
  // Returns true if the caller may know that the job exists.
  std::function<bool(const domain::JobKey& key)> may_see;
};

}  // namespace trainyard::control

// Splits the time from a job's creation to its end, or to now, into intervals by their use.
//
// The intervals follow each other without gaps, so their sum is exactly the wall time. They are
// computed from the attempts and phases in the job's record. The time to pull the image is part of
// `starting`, because it is not recorded as a phase. The times of checkpoints are not recorded
// either: if an attempt is followed by another one, its training is `lost` if the job has no
// checkpoints; otherwise an unknown part of it may be lost (lost_is_known).
//
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/enum_table.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

enum class TimeUse {
  queued,        // before the first attempt
  starting,      // an attempt has machines, and prepares image, network and container
  downloading,   // channels are downloaded
  training,      // the user's processes run
  lost,          // the user's processes ran, but the next attempt had to start again
  uploading,     // model and output are uploaded
  interrupted,   // from an interruption to the end of its attempt: notice and checkpoints
  stopping,      // from a stop request to the end
  queued_again,  // between two attempts
};
std::string_view to_string(TimeUse);  // "Queued", "QueuedAgain"

struct TimeInterval {
  TimeUse use = TimeUse::queued;
  uint32_t attempt = 0;  // 0: none
  Instant begin, end;
};

// Returns the intervals of a job; `now` is in the job's own time. Ensures: the first interval
// begins at the creation of the job, each other one at the end of the one before it, and the last
// one ends at the end of the job or at `now`. Empty if that is not after the creation.
std::vector<TimeInterval> time_intervals(const Job& job, Instant now);

struct JobTime {
  std::array<Duration, kEnumerators<TimeUse>> of{};  // indexed by TimeUse
  Duration wall{};
  Duration held{};  // the part of `wall` in which attempts held machines
  // false: a part of `training` may be lost, so the ratios are upper bounds
  bool lost_is_known = true;

  Duration in(TimeUse use) const { return of[size_t(use)]; }
  // Returns training time (without lost work) / wall time (ETTR); 0 if there is no wall time.
  double effective_ratio() const;
  // Returns training time (without lost work) / time in which the job held machines.
  double goodput() const;
};
JobTime time_of(const Job& job, Instant now);

}  // namespace trainyard::domain

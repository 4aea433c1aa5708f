// Accounts for every millisecond of a job's life: what it was used for, from the job's creation to
// its end, or to now.
//
// The intervals follow each other without gaps, so their sum is the wall time, exactly. They come
// from what a job's record has: its attempts and its phases. The time to pull the image is part of
// `starting`, since no phase of its own is recorded. When checkpoints were saved is not recorded
// either: the training of an attempt that another one followed is `lost` if the job has no
// checkpoints; if it has, an unknown part of it may be lost (lost_is_known).
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
  queued,        // until its first attempt
  starting,      // an attempt has its machines: image, network, container
  downloading,   // channels
  training,      // the user's processes run
  lost,          // they ran, and the next attempt had to begin again
  uploading,     // model and output
  interrupted,   // from an interruption to the end of its attempt: the notice, checkpoints
  stopping,      // from a stop request to the end
  queued_again,  // between two attempts
};
std::string_view to_string(TimeUse);  // "Queued", "QueuedAgain"

struct TimeInterval {
  TimeUse use = TimeUse::queued;
  uint32_t attempt = 0;  // 0: none
  Instant begin, end;
};

// Ensures: the first begins when the job was created; each begins where the one before it ends; the
// last ends when the job ended, or at `now`. Empty, if that is no later than its creation.
// `now`: in the job's own time.
std::vector<TimeInterval> time_intervals(const Job& job, Instant now);

struct JobTime {
  std::array<Duration, kEnumerators<TimeUse>> of{};  // by use
  Duration wall{};
  Duration held{};  // the part of `wall` in which attempts held machines
  // False: some of `training` may be lost, so that the ratios are upper bounds.
  bool lost_is_known = true;

  Duration in(TimeUse use) const { return of[size_t(use)]; }
  // The part of the wall time in which it trained, without lost work (ETTR); 0 without wall time.
  double effective_ratio() const;
  // The same part of the time in which it held machines.
  double goodput() const;
};
JobTime time_of(const Job& job, Instant now);

}  // namespace trainyard::domain

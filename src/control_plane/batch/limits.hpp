// Limits what a job of AWS Batch may request, as AWS does. The limits of the job itself are in domain (limits.hpp,
// job_options.hpp).
//
// Threads: constants. Units: in the names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::batch {

inline constexpr int64_t kAttemptSecondsMin = 60;        // of a timeout, as AWS
inline constexpr size_t kRetryRulesMax = 5;              // as AWS
inline constexpr size_t kDependenciesMax = 20;           // as AWS
inline constexpr int64_t kSchedulingPriorityMax = 9999;  // as AWS
inline constexpr int64_t kArraySizeMin = 2;              // as AWS
inline constexpr size_t kConsumptionsMax =
    10;  // resources that one job names: each is read whenever it waits
// A job without a timeout runs as long as it likes: ten years stand for that.
inline constexpr int64_t kRuntimeSecondsMax = 315'360'000;
inline constexpr int64_t kStopGraceSeconds = 30;  // between SIGTERM and SIGKILL, as AWS

}  // namespace trainyard::batch

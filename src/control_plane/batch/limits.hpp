// Defines the limits of requests for jobs of AWS Batch. The limits of all jobs are in domain
// (limits.hpp, job_options.hpp).
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
// Consumable resources of one job. Each is read in every iteration while the job waits.
inline constexpr size_t kConsumptionsMax = 10;
// The run time limit of a job without a timeout: ten years.
inline constexpr int64_t kRuntimeSecondsMax = 315'360'000;
inline constexpr int64_t kStopGraceSeconds = 30;  // between SIGTERM and SIGKILL, as AWS

}  // namespace trainyard::batch

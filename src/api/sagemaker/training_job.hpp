// Converts SageMaker's training jobs: requests to job specifications, and jobs to descriptions.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/job.hpp"
#include "observe/metrics.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/sagemaker.hpp"

namespace trainyard::api::sagemaker {

inline constexpr int64_t kMaxRuntimeSecondsDefault = 86'400;   // as on AWS
inline constexpr int64_t kMaxRuntimeSecondsMax = 28 * 86'400;  // as on AWS
inline constexpr int64_t kVolumeGibDefault = 30;               // as on AWS
inline constexpr size_t kTagsMax = 50;                         // of one resource, as on AWS
inline constexpr std::string_view kMetricsNamespace = "/aws/sagemaker/TrainingJobs";

// Converts a request. Checks the rules that the model's constraints lack. Unsupported parameters
// that a user would rely on are rejected with an explanation; harmless ones are stored and
// described.
Outcome<domain::JobSpec> job_spec_of(const shapes::sagemaker::CreateTrainingJobRequest& request,
                                     const FindImage& find_image,
                                     const domain::FileSystems& file_systems);

// Makes a metric definition. Errors: invalid, with a text for the client: not a regular expression
// of RE2, or no group for the value.
Result<domain::MetricDefinition> metric_definition(const std::string& name,
                                                   const std::string& regex);

// Errors: ValidationException (too many, reserved or repeated keys).
Outcome<std::vector<domain::Tag>> tags_of(const std::vector<shapes::sagemaker::Tag>& tags);

// Makes the constant part of a description: the request, with AWS's defaults.
Result<shapes::sagemaker::DescribeTrainingJobResponse> echo_of(const domain::Job& job);
// Adds the variable part of a description.
void describe(const domain::Job& job, Instant now,
              shapes::sagemaker::DescribeTrainingJobResponse& out);
shapes::sagemaker::TrainingJobSummary summary_of(const domain::Job& job, Instant now);

std::string_view status_of(domain::JobState state);  // "InProgress"
// Describes what a stopping or interrupted job waits for: "waiting for algo-1 and algo-2 to exit
// after SIGTERM, until 12:03:10 UTC"; "" if none of its processes runs. `now`: in the job's own
// time.
std::string describe_stop(const domain::Job& job, Instant now);

}  // namespace trainyard::api::sagemaker

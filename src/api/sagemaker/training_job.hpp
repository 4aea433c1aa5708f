// Converts between SageMaker's training jobs and jobs: a request becomes a job specification, a job becomes a description.
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

inline constexpr int64_t kMaxRuntimeSecondsDefault = 86'400;   // as AWS
inline constexpr int64_t kMaxRuntimeSecondsMax = 28 * 86'400;  // as AWS
inline constexpr int64_t kVolumeGibDefault = 30;               // as AWS
inline constexpr size_t kTagsMax = 50;                         // of one resource, as AWS
inline constexpr std::string_view kMetricsNamespace = "/aws/sagemaker/TrainingJobs";

// Checks what the model's constraints do not cover. Parameters that this server does not support and a user would rely on are
// rejected with an explanation; harmless ones are kept and echoed.
Outcome<domain::JobSpec> job_spec_of(const shapes::sagemaker::CreateTrainingJobRequest& request,
                                     const FindImage& find_image, const domain::FileSystems& file_systems);

// Errors: invalid, in words for the client: the regular expression is none of RE2, or has no group for the value.
Result<domain::MetricDefinition> metric_definition(const std::string& name, const std::string& regex);

// Errors: ValidationException, for too many, reserved or repeated keys.
Outcome<std::vector<domain::Tag>> tags_of(const std::vector<shapes::sagemaker::Tag>& tags);

// What of a description never changes: the request, with AWS's defaults.
Result<shapes::sagemaker::DescribeTrainingJobResponse> echo_of(const domain::Job& job);
// Adds all that does change.
void describe(const domain::Job& job, Instant now, shapes::sagemaker::DescribeTrainingJobResponse& out);
shapes::sagemaker::TrainingJobSummary summary_of(const domain::Job& job, Instant now);

std::string_view status_of(domain::JobState state);  // "InProgress"

}  // namespace trainyard::api::sagemaker

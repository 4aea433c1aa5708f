// Converts service jobs: requests that contain a CreateTrainingJob to training jobs in a queue, and
// such jobs to descriptions.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "batch/service_job.hpp"
#include "protocol/constraints.hpp"
#include "protocol/errors.hpp"
#include "sagemaker/training_job.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

// More than CreateTrainingJob's limits allow.
inline constexpr size_t kServicePayloadBytesMax = 100 * 1024;
inline constexpr size_t kTrainingJobNameMax = 63;  // as in the model

struct ServiceJob {
  std::string name;  // of the training job, and the id: "digits-2025-4b7d1f.."
  domain::JobSpec spec;
  std::vector<domain::Tag> tags;  // of the payload and the request
};

// PayloadRules has what the checks of a payload need: the same as for CreateTrainingJob.
struct PayloadRules {
  const Constraints& constraints;  // of SageMaker
  const FindImage& find_image;
  const domain::FileSystems& file_systems;
};

// `unique`: appended to the payload's name, since names may repeat in a queue, but not among
// training jobs. Errors: ClientException, naming the member of the request or the payload.
Outcome<ServiceJob> service_job_of(const shapes::batch::SubmitServiceJobRequest& request,
                                   const std::string& queue, const std::string& unique,
                                   const PayloadRules& rules);

// Requires: job.spec.contract == domain::Contract::training.
shapes::batch::DescribeServiceJobResponse describe_service(const domain::Job& job);
shapes::batch::ServiceJobSummary summary_of_service(const domain::Job& job);

std::string service_job_arn(const domain::Job& job);

}  // namespace trainyard::api::batch_api

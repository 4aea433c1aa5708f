// Converts service jobs: a request that contains a CreateTrainingJob becomes a training job in a queue, and such a job
// becomes a description.
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

inline constexpr size_t kServicePayloadBytesMax =
    100 * 1024;                                    // larger than what CreateTrainingJob's own limits allow
inline constexpr size_t kTrainingJobNameMax = 63;  // as the model

struct ServiceJob {
  std::string name;  // of its training job, and its id: "digits-2025-4b7d1f.."
  domain::JobSpec spec;
  std::vector<domain::Tag> tags;  // of the payload and of the request
};

// What checks a payload as CreateTrainingJob's own is checked.
struct PayloadRules {
  const Constraints& constraints;  // of SageMaker
  const FindImage& find_image;
  const domain::FileSystems& file_systems;
};

// `unique` makes the payload's name the job's own: names may repeat in a queue, and training jobs' may not.
// Errors: ClientException, naming what of request or payload is wrong.
Outcome<ServiceJob> service_job_of(const shapes::batch::SubmitServiceJobRequest& request,
                                   const std::string& queue, const std::string& unique,
                                   const PayloadRules& rules);

// Requires: job.spec.contract == domain::Contract::training.
shapes::batch::DescribeServiceJobResponse describe_service(const domain::Job& job);
shapes::batch::ServiceJobSummary summary_of_service(const domain::Job& job);

std::string service_job_arn(const domain::Job& job);

}  // namespace trainyard::api::batch_api

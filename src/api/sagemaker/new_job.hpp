// Converts a request to a new training job, and control's errors about it, for CreateTrainingJob
// and for PreviewJob. So a preview rejects the same requests as the creation, with the same errors.
//
// Threads: callable from anywhere, like the functions in the settings.
#pragma once

#include <string>

#include "operations/context.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/sagemaker.hpp"

namespace trainyard::api::sagemaker {

// Requires: the request satisfies its model's constraints, and its principal is authorised.
// Errors: ValidationException; ResourceLimitExceeded, if the disk is full.
Outcome<control::CreateJob> new_job_of(const shapes::sagemaker::CreateTrainingJobRequest& request,
                                       const Settings& settings, const Services& services,
                                       const Context& context);

// Converts control's error for a job that it has rejected. `arn`: the job's.
Failure creation_failure(const Error& error, const std::string& arn);

}  // namespace trainyard::api::sagemaker

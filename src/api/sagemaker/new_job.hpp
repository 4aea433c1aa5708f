// Makes a new training job of a request, for CreateTrainingJob and for its preview, and converts
// control's errors about it. So a preview refuses what the creation refuses, in the same words.
//
// Threads: callable from anywhere, as the functions in the settings are.
#pragma once

#include <string>

#include "operations/context.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/sagemaker.hpp"

namespace trainyard::api::sagemaker {

// Requires: the request satisfies its model's constraints, and its principal is authorised.
// Errors: ValidationException; ResourceLimitExceeded, when the disk is full.
Outcome<control::CreateJob> new_job_of(const shapes::sagemaker::CreateTrainingJobRequest& request,
                                       const Settings& settings, const Services& services,
                                       const Context& context);

// `arn`: of the job that control has refused.
Failure creation_failure(const Error& error, const std::string& arn);

}  // namespace trainyard::api::sagemaker

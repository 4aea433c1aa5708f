// Makes the policies for a job's own keys if the job's role is not defined.
//
// They allow what the job contract needs: reading the channels and the source archive; reading and
// writing below the output path (in the job's own directory: own_output()), the checkpoint path and
// the job's own directory of TensorBoard; the job's own log streams and metrics; describing the job
// itself. A manifest may name any object of its bucket, so a channel with a manifest may read the
// whole bucket.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "domain/job.hpp"
#include "policy/policy.hpp"

namespace trainyard::api {

// Requires: the job has an attempt.
std::vector<std::shared_ptr<const policy::Policy>> job_policies(const domain::Job& job);

// Escapes wildcards and variables in a text, for use in a policy.
std::string policy_literal(std::string_view text);

// Returns the S3 URI of the job's source archive (script mode); "" = none.
std::string source_archive_of(const domain::JobSpec& spec);

// Returns the S3 URI of a training job's own directory, without a trailing slash: OUTPUT_PATH/JOB,
// or the output path itself if its last part is the job's name. The SDK's `@remote` stores the
// function, its arguments and its result there.
std::string own_output(std::string output_uri, std::string_view job_name);

}  // namespace trainyard::api

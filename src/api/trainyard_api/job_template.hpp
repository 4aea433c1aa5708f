// A JobTemplate is the request of a training job, saved under a name, from which other jobs are
// made.
//
// Every principal that may list templates can read it, so it must not contain secrets. Environment
// variables and hyperparameters with values are rejected if their names suggest a secret, or if the
// author has listed the variable in secret_environment. The values are not examined.
//
// Threads: plain values and pure functions. Errors: invalid, with a text for the client.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::api::trainyard_api {

struct JobTemplate {
  std::string description;
  Json request = Json::object();  // of CreateTrainingJob; members may be missing
  // Names of variables whose values each job must provide.
  std::vector<std::string> secret_environment;
  std::string saved_by;  // an ARN
  Instant saved;
};

Json to_json(const JobTemplate& of);
Result<JobTemplate> job_template_from_json(const Json& json);

// Returns true if variables of this name usually contain a secret: true for HF_TOKEN, DB_PASSWORD,
// AWS_SECRET_ACCESS_KEY; false for MAX_TOKENS, AWS_ACCESS_KEY_ID.
bool names_secret(std::string_view variable);

// Checks that the request of a template has no secrets.
Result<void> check_no_secrets(const JobTemplate& of);

}  // namespace trainyard::api::trainyard_api

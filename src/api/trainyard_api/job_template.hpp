// Defines JobTemplate: the request of a training job, saved under a name, that others begin with.
//
// A template is read by everybody who may list templates, so it contains no secrets: values of
// environment variables and hyperparameters whose names look like those of secrets are refused, and
// so are those that its author has marked.
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
  // names of variables that each job brings along
  std::vector<std::string> secret_environment;
  std::string saved_by;  // an ARN
  Instant saved;
};

Json to_json(const JobTemplate& of);
Result<JobTemplate> job_template_from_json(const Json& json);

// Returns true for the name of a variable that usually has a secret: HF_TOKEN, DB_PASSWORD,
// AWS_SECRET_ACCESS_KEY; not for MAX_TOKENS, AWS_ACCESS_KEY_ID.
bool names_secret(std::string_view variable);

// Checks that the request of a template has no secrets.
Result<void> check_no_secrets(const JobTemplate& of);

}  // namespace trainyard::api::trainyard_api

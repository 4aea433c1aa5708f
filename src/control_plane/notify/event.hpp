// Event is what happened, in EventBridge's shape; and what a target receives of it.
//
// Threads: pure functions. Errors: invalid, naming the member or the place of the fault.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "notify/record.hpp"

namespace trainyard::notify {

struct Event {
  std::string region;
  std::string source;       // "aws.sagemaker"
  std::string detail_type;  // "SageMaker Training Job State Change"
  Instant time;
  std::vector<std::string> resources;  // ARNs
  Json detail = Json::object();
  std::string id = {};  // "": made when it is put
};

// {"version": "0", "id", "detail-type", "source", "account", "time", "region", "resources",
// "detail"}
Json event_json(const Event& event, const std::string& account);

// Finds the value at a path such as "$.detail.items[0].name"; nullptr: there is none.
const Json* value_at(const Json& event, std::string_view path);
// Errors: invalid, unless the path is "$" or begins with "$." or "$[".
Result<void> check_path(std::string_view path);

// Checks the members of a target that make its input. Errors: invalid.
Result<void> check_input(const Target& target);

// Returns what the target receives: its constant input, the part at its path, its template with
// variables replaced, or the whole event. A variable without a value is null, and empty within
// quotes. `now` is the value of <aws.events.event.ingestion-time>.
std::string input_of(const Target& target, const Json& event, const std::string& rule_arn,
                     Instant now);

}  // namespace trainyard::notify

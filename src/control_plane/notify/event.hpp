// An Event is a change that is reported in EventBridge's shape. input_of() makes what a target
// receives of it.
//
// Threads: pure functions. Errors: invalid, with the name of the invalid member or path.
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
  std::string id = {};  // "": EventBus::put() makes one
};

// Returns {"version": "0", "id", "detail-type", "source", "account", "time", "region", "resources",
// "detail"}.
Json event_json(const Event& event, const std::string& account);

// Finds the value at a path such as "$.detail.items[0].name". Returns nullptr if it does not exist.
const Json* value_at(const Json& event, std::string_view path);
// Checks the syntax of a path. Errors: invalid, unless it is "$" or begins with "$." or "$[".
Result<void> check_path(std::string_view path);

// Checks the members of a target that define its input. Errors: invalid.
Result<void> check_input(const Target& target);

// Returns what the target receives: its constant input, the part of the event at its path, its
// template with variables replaced, or the whole event. A variable without a value becomes null, or
// nothing within quotes. `now` is the value of <aws.events.event.ingestion-time>.
std::string input_of(const Target& target, const Json& event, const std::string& rule_arn,
                     Instant now);

}  // namespace trainyard::notify

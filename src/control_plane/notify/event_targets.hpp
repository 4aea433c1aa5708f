// Sends messages of rules to targets that are log groups or job queues. (Topics receive them in
// EventBus::put().)
//
// Threads: the function that send_to_targets() returns is callable from anywhere, and blocks.
// Errors: in the result. Lifetime: logs and clock outlive that function.
#pragma once

#include <functional>
#include <string>

#include "base/json.hpp"
#include "notify/notifications.hpp"
#include "observe/logs.hpp"

namespace trainyard::notify {

// Submits a job of Batch in the region, with the rights of the principal that added the target.
// `request`: the request of SubmitJob. After an error of kind denied, invalid or not_found it is
// not retried; after others it is.
using SubmitJob = std::function<Result<void>(const std::string& region, const Json& creator,
                                             const Json& request)>;

Notifications::SendEvent send_to_targets(observe::Logs& logs, Clock& clock, SubmitJob submit);

// Returns NAME of "arn:aws:logs:REGION:ACCOUNT:log-group:NAME", with or without ":*" at the end, or
// "" for another ARN.
std::string log_group_of_arn(const std::string& arn);

// Returns the SubmitJob request for a target that is a job queue. If the input is an object with
// "ContainerOverrides", "Parameters" or "ArrayProperties", it sets these members, as on AWS.
Json submit_request_of(const Target& target, const std::string& input);

}  // namespace trainyard::notify

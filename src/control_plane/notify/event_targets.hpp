// Sends what rules have matched to their targets: a log group or a job queue. (Topics receive it
// when the event is put.)
//
// Threads: the function that is made is callable from anywhere, and blocks. Errors: in the result.
// Lifetime: logs and clock outlive the function.
#pragma once

#include <functional>
#include <string>

#include "base/json.hpp"
#include "notify/notifications.hpp"
#include "observe/logs.hpp"

namespace trainyard::notify {

// Submits a job of Batch in the region, with the rights of the principal that added the target.
// `request`: SubmitJob's. Errors: denied, invalid, not_found: it is not tried again; others are.
using SubmitJob = std::function<Result<void>(const std::string& region, const Json& creator,
                                             const Json& request)>;

Notifications::SendEvent send_to_targets(observe::Logs& logs, Clock& clock, SubmitJob submit);

// "arn:aws:logs:REGION:ACCOUNT:log-group:NAME" and ":*" -> NAME; "": it has another form.
std::string log_group_of_arn(const std::string& arn);

// The request of a job queue's target. The input, if it is an object with "ContainerOverrides",
// "Parameters" or "ArrayProperties", sets these, as on AWS.
Json submit_request_of(const Target& target, const std::string& input);

}  // namespace trainyard::notify

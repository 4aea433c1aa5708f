// Adds the accesses of SNS and EventBridge requests that the access table lacks: the condition keys
// of their members, and the targets of a rule.
//
// The server delivers to the targets of a rule later, with its own rights, so the principal that
// names a target must have the right to use it.
//
// Threads: pure functions. Errors: none; an invalid member adds nothing, and is rejected later.
#pragma once

#include <map>
#include <string>

#include "auth/access_table.hpp"
#include "operations/services.hpp"

namespace trainyard::api {

// Requires: `out` has the accesses of the table.
void add_notify_accesses(const Context& context, const shapes::OperationShape& operation,
                         const void* input, Accesses& out);

// True for ARNs of topics, subscriptions and rules.
bool is_notify_arn(const std::string& arn);
// Returns the tags of a topic, by its ARN or a subscription's, or of a rule; none if it is unknown.
std::map<std::string, std::string> notify_tags(const notify::Notifications& all,
                                               const std::string& arn);

}  // namespace trainyard::api

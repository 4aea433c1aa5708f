// Finds the accesses and condition values of a CloudWatch request that the access table's templates
// cannot express: namespaces, jobs of metrics, actions of alarms, log groups of insight rules, and
// tags.
//
// Threads: pure functions. Errors: none.
#pragma once

#include "auth/access_table.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Requires: `out` has the accesses of the operation's lines.
void add_cloudwatch_accesses(const Context& context, const shapes::OperationShape& operation,
                             const void* input, Accesses& out);

}  // namespace trainyard::api

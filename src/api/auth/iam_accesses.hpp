// Adds the accesses of an IAM request: the entity that it changes or reads, with the condition keys
// iam:PolicyARN and iam:PermissionsBoundary.
//
// Threads: pure functions. Errors: none.
#pragma once

#include "auth/access_table.hpp"

namespace trainyard::api {

void add_iam_accesses(const Context& context, const shapes::OperationShape& operation,
                      const void* input, Accesses& out);

}  // namespace trainyard::api

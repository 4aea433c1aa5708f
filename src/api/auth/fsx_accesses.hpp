// Adds the accesses of an FSx request that the access table lacks: to S3, which the server reads
// and writes later for the caller, and to tags.
//
// Threads: pure functions. Errors: none.
#pragma once

#include "auth/access_table.hpp"

namespace trainyard::api {

// Requires: out.all begins with the access of the operation's row.
void add_fsx_accesses(const shapes::OperationShape& operation, const void* input, Accesses& out);

}  // namespace trainyard::api

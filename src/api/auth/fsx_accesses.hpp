// Adds what a request to FSx needs in addition to the rows of the access table: rights on S3, since
// the server acts for the caller later, and on tags.
//
// Threads: pure functions. Errors: none.
#pragma once

#include "auth/access_table.hpp"

namespace trainyard::api {

// Requires: out.all has the access of the operation's row first.
void add_fsx_accesses(const shapes::OperationShape& operation, const void* input, Accesses& out);

}  // namespace trainyard::api

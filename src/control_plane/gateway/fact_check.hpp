// Checks and limits the fields of a fact that an agent reports.
//
// Threads: pure function.
#pragma once

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// Returns the fact with a shortened message, and without an invalid address. Errors: corrupt, for
// the name of an object that is not a valid key.
Result<wire::StateFact> accepted_fact(wire::StateFact fact);

}  // namespace trainyard::gateway

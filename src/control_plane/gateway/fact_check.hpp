// Limits the fields of a fact that an agent reports.
//
// Threads: pure function.
#pragma once

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// Returns the fact with a shortened message, and without an address that cannot be one. Errors:
// corrupt, for the name of an object that no key can have.
Result<wire::StateFact> accepted_fact(wire::StateFact fact);

}  // namespace trainyard::gateway

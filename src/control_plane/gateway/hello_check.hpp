// Decides whether the server accepts an agent, from its Hello and the state of its job.
//
// An attempt has one agent: of two in different allocations (docs/decisions/38) the second one is
// rejected while the first one is linked.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// The Hello of another link for the same host, which is open.
struct LinkedAgent {
  uint64_t allocation = 0;
};

// Returns the reason to reject the agent; "" if it is accepted.
std::string refusal_of(const domain::Job& job, const wire::Hello& hello,
                       const std::optional<LinkedAgent>& other);

}  // namespace trainyard::gateway

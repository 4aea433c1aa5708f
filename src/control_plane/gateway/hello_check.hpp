// Decides whether the server accepts an agent, from its Hello and the state of its job.
//
// Each host of an attempt has one agent. While it is connected, an agent in another allocation
// (docs/decisions/38) is rejected.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// The agent of another open link for the same host.
struct LinkedAgent {
  uint64_t allocation = 0;
};

// Returns the reason to reject the agent; "" if it is accepted. `peer_name`: the common name of the
// link's certificate, "" for a link without TLS.
std::string refusal_of(const domain::Job& job, const wire::Hello& hello,
                       const std::string& peer_name, const std::optional<LinkedAgent>& other);

}  // namespace trainyard::gateway

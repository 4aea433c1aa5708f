// Encodes the endpoint at which a rank listens as "HOST PORT", for other ranks.
//
// Threads: pure functions. Errors: corrupt, when a text cannot be an endpoint.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::collectives {

std::string encode_endpoint(const Endpoint& endpoint);
Result<Endpoint> decode_endpoint(std::string_view text);

}  // namespace trainyard::collectives

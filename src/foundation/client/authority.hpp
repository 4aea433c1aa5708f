// Returns the host and port of an endpoint.
//
// Threads: pure. Errors: invalid, unless it is an http:// or https:// URL without a path.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::client {

// "https://host:port/" -> "host:port", as in the Host header.
Result<std::string> authority_of(const std::string& endpoint);

}  // namespace trainyard::client

// The host and port of an endpoint.
//
// Threads: pure. Errors: invalid, for what is no http:// or https:// URL without a path.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::client {

// "https://host:port/" -> "host:port", as the Host header says it.
Result<std::string> authority_of(const std::string& endpoint);

}  // namespace trainyard::client

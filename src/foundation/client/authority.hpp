// Returns the host and port of an endpoint.
//
// Threads: pure. Errors: invalid, if the endpoint is not an http:// or https:// URL without a path.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::client {

// Converts "https://host:port/" to "host:port", the form of the Host header.
Result<std::string> authority_of(const std::string& endpoint);

}  // namespace trainyard::client

// Makes the response to a request while the server is not ready: 503 in the form of the request's
// protocol, which makes clients retry. `why`: a sentence for users.
//
// Threads: pure function.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.hpp"

namespace trainyard::api {

net::Response not_ready(const net::RequestHead& head, std::string_view request_id,
                        const std::string& why = "The server is starting. Please try again.");

}  // namespace trainyard::api

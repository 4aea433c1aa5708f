// Responds to a request while the server cannot serve it yet: 503 in the form of the request's own protocol, after which
// clients retry.
//
// Threads: pure function.
#pragma once

#include <string_view>

#include "net/http_server.hpp"

namespace trainyard::api {

net::Response not_ready(const net::RequestHead& head, std::string_view request_id);

}  // namespace trainyard::api

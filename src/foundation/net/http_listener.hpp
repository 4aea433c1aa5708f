// Serves HTTP (http_server.hpp) on a socket that is already listening, because it was opened in
// another network namespace or long before its first connection.
#pragma once

#include "net/http_server.hpp"
#include "os/files.hpp"

namespace trainyard::net {

// Serves on `listener`, and ignores settings.listen. Requires: the socket is IPv4.
Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler,
                                               os::File listener);

}  // namespace trainyard::net

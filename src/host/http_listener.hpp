// Serves HTTP (http_server.hpp) on a socket that listens already: one that was opened in another network namespace, or
// long before somebody came.
#pragma once

#include "host/files.hpp"
#include "host/http_server.hpp"

namespace trainyard::host {

// settings.listen counts for nothing. Requires: IPv4.
Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler, File listener);

}  // namespace trainyard::host

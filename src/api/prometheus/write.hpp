// Makes the receiver of Prometheus' remote write protocol, in front of another handler: it handles
// POST /api/v1/write with a bearer token, and forwards all other requests.
//
// Points go into the namespace Prometheus of CloudWatch's metrics, if the token's principal may put
// metric data there. The responses:
//
//   204   all points are durable
//   400   the request is malformed or too large, and nothing is stored; or the namespace has too
//         many metrics: points of further metrics are left out, and all others are durable
//   415   the content type, its message or the content encoding is not that of remote write 1.0
//   503   nothing is stored, since the disk is full or the storage failed: senders retry
//
// Threads: as net::Handler. Lifetime: settings, services and the next handler outlive it. Errors:
// none.
#pragma once

#include <memory>
#include <string_view>

#include "net/http_server.hpp"
#include "operations/services.hpp"

namespace trainyard::api::prometheus {

inline constexpr std::string_view kWritePath = "/api/v1/write";

std::unique_ptr<net::Handler> make_write(const Settings& settings, const Services& services,
                                         net::Handler& next);

}  // namespace trainyard::api::prometheus

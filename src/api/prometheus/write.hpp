// Makes the handler of a receiver of Prometheus' remote write protocol, in front of another
// handler: POST /api/v1/write with a bearer token is its own, and all other requests pass through.
//
// Points go into the namespace Prometheus of CloudWatch's metrics, if the token's principal may put
// metric data there. The answer is 204 when they are durable. A request that is rejected has stored
// nothing.
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

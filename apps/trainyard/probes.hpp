// Answers the probes of supervisors and load balancers.
//
//   GET /healthz  200 while the process serves requests
//   GET /readyz   200 while the API is open; 503 with the reason before, and after the ledger has
//                 failed
//
// Only requests without a signature are probes: an S3 bucket may have either name.
//
// Threads: pure function.
#pragma once

#include <optional>
#include <string>

#include "net/http_server.hpp"

namespace trainyard::apps {

// Returns nullopt if the request is not a probe. `not_ready` is the reason why requests are not
// served; "" if they are.
std::optional<net::Response> answer_probe(const net::RequestHead& head,
                                          const std::string& not_ready);

}  // namespace trainyard::apps

// Answers the probes of supervisors and load balancers.
//
//   GET /healthz  200 while the process serves requests at all
//   GET /readyz   200 once the API is open, 503 before
//
// Only requests without a signature are probes: a bucket of S3 may have either name.
//
// Threads: pure function.
#pragma once

#include <optional>

#include "host/http_server.hpp"

namespace trainyard::apps {

// Nothing: the request is no probe.
std::optional<host::Response> answer_probe(const host::RequestHead& head, bool ready);

}  // namespace trainyard::apps

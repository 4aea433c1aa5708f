// Provides what the handlers of requests with bearer tokens share: contexts and short answers.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"

namespace trainyard::api::prometheus {

inline constexpr std::string_view kTenantPrefix = "prometheus ";  // its share of threads is apart

// The result of choose() for a request with a valid token.
struct Admitted {
  Principal principal;
};

net::Response text_reply(int status, std::string body);
net::Response wrong_token();
// The context of a request, in the server's first region. It may describe no job.
Context context_of(const net::RequestHead& head, const Principal& principal,
                   const Settings& settings, Instant now);

}  // namespace trainyard::api::prometheus

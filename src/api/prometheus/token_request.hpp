// Declares the helpers of the handlers whose requests have bearer tokens: admission, contexts and
// short answers.
//
// Threads: callable from any. Errors: none.
#pragma once

#include <string>

#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "operations/rate_limiter.hpp"
#include "operations/services.hpp"

namespace trainyard::api::prometheus {

// Admitted is the finding of choose() for a request with a valid token.
struct Admitted {
  Principal principal;
};

net::Response text_reply(int status, std::string body);
// Returns the choice for a request with a valid token, without its finding; a rejection if the
// principal exceeds its rate. The body is read before the request is handled.
net::Handler::Choice admit(const Principal& principal, OperationClass operations,
                           size_t body_bytes_max, const Settings& settings, Clock& clock,
                           RateLimiter& limiter);
net::Response invalid_token_reply();
// Makes the context of a request, in the server's first region. It may not describe jobs.
Context context_of(const net::RequestHead& head, const Principal& principal,
                   const Settings& settings, Instant now);

}  // namespace trainyard::api::prometheus

#include "prometheus/token_request.hpp"

#include <utility>

namespace trainyard::api::prometheus {
namespace {

constexpr std::string_view kTenantPrefix = "prometheus ";  // its share of threads is apart

}  // namespace

net::Response text_reply(int status, std::string body) {
  net::Response out{status, {}, std::move(body)};
  out.headers.add("Content-Type", "text/plain; charset=utf-8");
  out.headers.add("Cache-Control", "no-store");
  return out;
}

net::Response invalid_token_reply() {
  auto out = text_reply(401, "The bearer token is not valid.\n");
  out.headers.add("WWW-Authenticate", "Bearer");
  return out;
}

net::Handler::Choice admit(const Principal& principal, OperationClass operations,
                           size_t body_bytes_max, const Settings& settings, Clock& clock,
                           RateLimiter& limiter) {
  if (!limiter.admit(principal.name, operations, settings.rate_limits(), clock.monotonic()))
    return {.refusal = text_reply(429, "Rate exceeded\n")};
  net::Handler::Choice choice{.intake = net::Intake::blocking, .body_bytes_max = body_bytes_max};
  choice.tenant = std::string(kTenantPrefix) + principal.name;
  return choice;
}

Context context_of(const net::RequestHead& head, const Principal& principal,
                   const Settings& settings, Instant now) {
  Context context;
  context.principal = principal;
  context.region = settings.regions.empty() ? "" : settings.regions.front();
  context.now = now;
  context.source_ip = head.peer_address();
  context.secure = head.tls;
  context.user_agent = head.headers.get("user-agent");
  return context;
}

}  // namespace trainyard::api::prometheus

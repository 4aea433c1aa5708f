#include "trainyard/probes.hpp"

namespace trainyard::apps {

std::optional<net::Response> answer_probe(const net::RequestHead& head,
                                          const std::string& not_ready) {
  const bool health = head.target == "/healthz";
  if (!health && head.target != "/readyz") return {};
  if ((head.method != "GET" && head.method != "HEAD") || head.headers.has("Authorization"))
    return {};
  net::Response response;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.headers.add("Cache-Control", "no-store");
  if (health || not_ready.empty()) {
    response.body = "ok\n";
  } else {
    response.status = 503;
    response.headers.add("Retry-After", "1");
    response.body = not_ready + "\n";
  }
  return response;
}

}  // namespace trainyard::apps

#include "collectives/transport/tcp/endpoint_text.hpp"

#include "base/text.hpp"

namespace trainyard::collectives {

std::string encode_endpoint(const Endpoint& endpoint) {
  return endpoint.host + " " + std::to_string(endpoint.port);
}

Result<Endpoint> decode_endpoint(std::string_view text) {
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos || space == 0)
    return corrupt("invalid rank address: no space");
  const auto port = parse_int(text.substr(space + 1));
  if (!port || *port <= 0 || *port > 65535) return corrupt("invalid rank address: no port");
  return Endpoint{std::string(text.substr(0, space)), uint16_t(*port)};
}

}  // namespace trainyard::collectives

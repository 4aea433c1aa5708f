#include "client/authority.hpp"

#include <string_view>

#include "base/text.hpp"

namespace trainyard::client {

Result<std::string> authority_of(const std::string& endpoint) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!endpoint.starts_with(scheme)) continue;
    const auto rest = std::string_view(endpoint).substr(scheme.size());
    const std::string authority(rest.substr(0, rest.find('/')));
    if (!authority.empty() &&
        rest.substr(authority.size()).find_first_not_of('/') == std::string_view::npos)
      return authority;
  }
  return invalid("invalid endpoint: it must be http://HOST:PORT or https://HOST:PORT, not '" +
                 shorten(endpoint, 200) + "'");
}

}  // namespace trainyard::client

#include "contract/log_line.hpp"

namespace trainyard::contract {

std::string log_line(Instant at, std::string_view text) {
  const std::string iso = to_iso8601(at, false);  // 2026-11-27T09:45:00Z
  return "[" + iso.substr(5, 2) + "/" + iso.substr(8, 2) + "/" + iso.substr(0, 4) + " " +
         iso.substr(11, 8) + " INFO 1] " + std::string(text);
}

}  // namespace trainyard::contract

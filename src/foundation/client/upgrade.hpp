// Reads the response to an upgrade request: 101 and then bytes of the other protocol, or an
// ordinary response with the reason of a refusal.
//
// Threads: pure. Errors: invalid, for bytes that are not an HTTP response; exhausted, for a header
// longer than kUpgradeHeadBytesMax.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "client/client.hpp"

namespace trainyard::client {

inline constexpr size_t kUpgradeHeadBytesMax = 64 << 10;
inline constexpr size_t kRefusalBytesMax = 64 << 10;

struct Upgrade {
  Answer answer;      // status 101: upgraded
  std::string early;  // bytes of the other protocol that arrived with the header
};

// Returns nullopt while more bytes are needed. `ended`: the connection is closed, so no more
// arrive.
Result<std::optional<Upgrade>> read_upgrade(std::string_view bytes, bool ended);

}  // namespace trainyard::client

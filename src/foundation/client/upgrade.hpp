// Reads the answer to an upgrade request: 101 and then the other protocol's bytes, or an ordinary
// answer with the reason of a refusal.
//
// Threads: pure. Errors: invalid, unless it is an HTTP answer; exhausted, for a head past
// kUpgradeHeadBytesMax.
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
  std::string early;  // bytes of the other protocol that arrived with the head
};

// Returns nothing while more bytes are needed. `ended`: there are no more.
Result<std::optional<Upgrade>> read_upgrade(std::string_view bytes, bool ended);

}  // namespace trainyard::client

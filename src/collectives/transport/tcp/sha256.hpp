// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), for ranks that prove they know the group's secret.
//
// Our own few lines, because trainers run in containers of any make and bring no library for them.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace trainyard::collectives {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);
// Compares without telling by its duration where the first difference is.
bool equal_digests(const Digest& a, const Digest& b);

}  // namespace trainyard::collectives

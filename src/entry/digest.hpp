// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104): what hosts of a gang know each other by.
//
// Here and not OpenSSL's, because entry is one small static program and libcrypto's is larger than all of it.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::entry {

inline constexpr size_t kDigestBytes = 32;

std::string sha256(std::string_view bytes);                             // 32 bytes
std::string hmac_sha256(std::string_view key, std::string_view bytes);  // 32 bytes
// Takes as long for texts that differ at once as for equal ones.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace trainyard::entry

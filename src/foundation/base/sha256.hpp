// Computes SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), with which the hosts and ranks of a gang
// prove that they know its secret.
//
// OpenSSL is not used here: entry is a small static program, and trainers run in containers that
// may lack the library. Programs that link OpenSSL use its functions instead.
//
// Threads: pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);
std::string bytes_of(const Digest& digest);
// Returns true for 64 lower-case hex digits, as which a hash is written.
bool is_hex_digest(std::string_view text);
// Compare in a time that does not depend on the position of the first difference. Texts of
// different lengths are unequal at once.
bool equal_in_constant_time(std::string_view a, std::string_view b);
bool equal_in_constant_time(const Digest& a, const Digest& b);

}  // namespace trainyard

// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), for the hosts and ranks of a gang, who prove that they know its secret.
//
// Here and not OpenSSL's: entry is one small static program, and trainers run in containers that bring no library for
// them. Who has OpenSSL uses that.
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
// Takes as long for texts that differ at once as for equal ones.
bool equal_in_constant_time(std::string_view a, std::string_view b);
bool equal_in_constant_time(const Digest& a, const Digest& b);

}  // namespace trainyard

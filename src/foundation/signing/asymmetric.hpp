// Derives the ECDSA keys of SigV4a (AWS4-ECDSA-P256-SHA256) from secret access keys, and verifies with them.
//
// The private key is made by the KDF in counter mode of NIST SP 800-108 with HMAC-SHA256, as AWS's SDKs make it
// (aws-c-auth, key_derivation.c): the same access key has the same key pair everywhere and on each day.
//
// Threads: pure. Errors: none; what is not a signature does not verify.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::signing {

// 32 bytes, big-endian.
std::string derive_private_key(std::string_view access_key_id, std::string_view secret_access_key);
// The point of P-256 that belongs to it: 65 bytes, uncompressed. Requires: a key that derive_private_key() gave.
std::string public_key_of(std::string_view private_key);
// `signature`: DER, of the SHA-256 of `text`.
bool verify_ecdsa(std::string_view public_key, std::string_view text, std::string_view signature);
// For tests and clients; another signature each time.
std::string sign_ecdsa(std::string_view private_key, std::string_view text);

}  // namespace trainyard::signing

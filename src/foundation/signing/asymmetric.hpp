// Derives the ECDSA keys of SigV4a (AWS4-ECDSA-P256-SHA256) from secret access keys, and makes and
// verifies signatures with them.
//
// The private key is derived by the KDF in counter mode of NIST SP 800-108 with HMAC-SHA256, as in
// AWS's SDKs (aws-c-auth, key_derivation.c). An access key therefore has the same key pair
// everywhere and on each day.
//
// Threads: pure. Errors: none; verify_ecdsa() returns false for invalid signatures.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::signing {

// Returns the private key: 32 bytes, big-endian.
std::string derive_private_key(std::string_view access_key_id, std::string_view secret_access_key);
// Returns the public key, an uncompressed point of P-256: 65 bytes. Requires: a key of
// derive_private_key().
std::string public_key_of(std::string_view private_key);
// Verifies `signature` (DER) of the SHA-256 of `text`.
bool verify_ecdsa(std::string_view public_key, std::string_view text, std::string_view signature);
// Signs the SHA-256 of `text`, for tests and clients. The signature differs at each call.
std::string sign_ecdsa(std::string_view private_key, std::string_view text);

}  // namespace trainyard::signing

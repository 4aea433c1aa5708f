// Encrypts short texts (secret access keys) for storage: AES-256-GCM with a key that is kept
// outside of the database.
//
// A sealed text is base64 of: version (one byte, 1), nonce (12 bytes), ciphertext, tag (16 bytes).
// The context (the access key's id) is authenticated with it, so a sealed text moved to another
// record cannot be decrypted.
//
// Threads: pure functions.
// Errors:  unseal(): corrupt (changed bytes, another key, another context, an unknown version).
#pragma once

#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"

namespace trainyard::signing {

inline constexpr size_t kSealingKeyBytes = 32;
inline constexpr size_t kSealedTextBytesMax = 64 * 1024;  // of base64

// Requires: key has kSealingKeyBytes. `random` must be unpredictable: a nonce is never used twice.
std::string seal(std::string_view key, std::string_view text, std::string_view context,
                 Random& random);
Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view context);

}  // namespace trainyard::signing

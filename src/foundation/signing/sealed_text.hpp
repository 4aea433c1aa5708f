// Encrypts short texts (secret access keys) for storage: AES-256-GCM with a key that is stored
// outside of the database.
//
// A sealed text is base64 of: version (one byte, 1), nonce (12 bytes), ciphertext, tag (16 bytes).
// The context (the access key ID) is authenticated with the text, so a sealed text that was moved
// to another record cannot be decrypted.
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
inline constexpr size_t kSealedTextBytesMax = 64 * 1024;  // limit of the base64 text

// Encrypts a text. Requires: the key has kSealingKeyBytes; `random` is unpredictable, because a
// nonce must never be used twice.
std::string seal(std::string_view key, std::string_view text, std::string_view context,
                 Random& random);
Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view context);

}  // namespace trainyard::signing

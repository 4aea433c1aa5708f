#include "signing/sealed_text.hpp"

#include <openssl/evp.h>

#include <memory>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::signing {
namespace {

constexpr char kVersion = 1;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

struct Free {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Free>;

const unsigned char* bytes_in(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_in(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string seal(std::string_view key, std::string_view text, std::string_view context,
                 Random& random) {
  CHECK(key.size() == kSealingKeyBytes, "the data directory makes keys of this size");
  CHECK(text.size() < kSealedTextBytesMax / 2, "secrets are short");
  std::string nonce(kNonceBytes, '\0');
  random.fill(std::as_writable_bytes(std::span(nonce)));
  std::string sealed(text.size(), '\0'), tag(kTagBytes, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  bool good = cipher && EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_in(key),
                                           bytes_in(std::string_view(nonce))) == 1;
  good = good && EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes_in(context),
                                   int(context.size())) == 1;
  good = good && EVP_EncryptUpdate(cipher.get(), bytes_in(sealed), &length, bytes_in(text),
                                   int(text.size())) == 1;
  good = good && EVP_EncryptFinal_ex(cipher.get(), bytes_in(sealed) + length, &length) == 1;
  good = good &&
         EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, int(kTagBytes), tag.data()) == 1;
  CHECK(good, "AES-256-GCM of libcrypto encrypts in memory");
  return to_base64(std::string(1, kVersion) + nonce + sealed + tag);
}

Result<std::string> unseal(std::string_view key, std::string_view sealed,
                           std::string_view context) {
  CHECK(key.size() == kSealingKeyBytes, "the data directory makes keys of this size");
  const auto broken = [] {
    return corrupt("decrypting a sealed text: it was changed, or encrypted with another key");
  };
  if (sealed.size() > kSealedTextBytesMax) return broken();
  const auto bytes = from_base64(sealed);
  if (!bytes || bytes->size() < 1 + kNonceBytes + kTagBytes || bytes->front() != kVersion)
    return broken();
  const std::string_view all(*bytes);
  const auto nonce = all.substr(1, kNonceBytes);
  const auto body = all.substr(1 + kNonceBytes, all.size() - 1 - kNonceBytes - kTagBytes);
  std::string tag(all.substr(all.size() - kTagBytes)), text(body.size(), '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  bool good = cipher && EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes_in(key),
                                           bytes_in(nonce)) == 1;
  good = good && EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes_in(context),
                                   int(context.size())) == 1;
  good = good && EVP_DecryptUpdate(cipher.get(), bytes_in(text), &length, bytes_in(body),
                                   int(body.size())) == 1;
  good = good &&
         EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, int(kTagBytes), tag.data()) == 1;
  good = good && EVP_DecryptFinal_ex(cipher.get(), bytes_in(text) + length, &length) == 1;
  if (!good) return broken();
  return text;
}

}  // namespace trainyard::signing

#include "notify/message_signer.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "signing/signing.hpp"

namespace trainyard::notify {
namespace {

constexpr int kKeyBits = 2048;
constexpr auto kCertificateLifetime = std::chrono::hours(24 * 3650);
constexpr auto kRenewBefore = std::chrono::hours(24 * 30);
// A certificate is valid from a day ago, for receivers whose clock is slow.
constexpr auto kBackdated = std::chrono::hours(24);
constexpr size_t kPemBytesMax = 64 << 10;
constexpr size_t kNameDigits = 32;

template <auto free>
struct Freer {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using PrivateKey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;

time_t seconds_of(Instant instant) { return time_t(to_milliseconds(instant) / 1000); }

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  CHECK(length > 0, "writing PEM to memory succeeds");
  return std::string(data, size_t(length));
}

Result<Certificate> make_certificate(EVP_PKEY* key, Instant now) {
  Certificate made(X509_new());
  X509* const certificate = made.get();
  const time_t from = seconds_of(now - kBackdated), until = seconds_of(now + kCertificateLifetime);
  const auto* name_text = reinterpret_cast<const unsigned char*>("Trainyard notifications");
  X509_NAME* const name = certificate ? X509_get_subject_name(certificate) : nullptr;
  const bool done =
      certificate && X509_set_version(certificate, 2) == 1 &&
      ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), to_milliseconds(now)) == 1 &&
      X509_time_adj_ex(X509_getm_notBefore(certificate), 0, 0, const_cast<time_t*>(&from)) &&
      X509_time_adj_ex(X509_getm_notAfter(certificate), 0, 0, const_cast<time_t*>(&until)) &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, name_text, -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
      X509_sign(certificate, key, EVP_sha256()) > 0;
  if (!done) return internal("making the certificate of notifications: OpenSSL failed");
  return made;
}

// Reads the key and the certificate. Errors: not_found, if they are missing or expire soon.
Result<std::pair<PrivateKey, std::string>> read_pair(const std::string& key_path,
                                                     const std::string& path, Instant now) {
  const std::string key_text = TRY(os::read_file(key_path, kPemBytesMax));
  std::string text = TRY(os::read_file(path, kPemBytesMax));
  const Bio key_bio(BIO_new_mem_buf(key_text.data(), int(key_text.size())));
  const Bio bio(BIO_new_mem_buf(text.data(), int(text.size())));
  PrivateKey key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!key || !certificate || X509_check_private_key(certificate.get(), key.get()) != 1)
    return corrupt(key_path + " and " + path + " are not a key and its certificate");
  time_t limit = seconds_of(now + kRenewBefore);
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &limit) <= 0)
    return not_found(path + " expires soon");
  return std::pair(std::move(key), std::move(text));
}

}  // namespace

struct MessageSigner::Key {
  PrivateKey key;
};

MessageSigner::MessageSigner(std::unique_ptr<Key> key, std::string certificate)
    : key_(std::move(key)),
      certificate_(std::move(certificate)),
      file_name_("SimpleNotificationService-" +
                 signing::sha256_hex(certificate_).substr(0, kNameDigits) + ".pem") {}

MessageSigner::~MessageSigner() = default;

Result<std::unique_ptr<MessageSigner>> MessageSigner::open(const std::string& directory,
                                                           Instant now) {
  TRY(os::make_directories(directory, 0700));
  const std::string key_path = directory + "/signing-key.pem", path = directory + "/signing.pem";
  auto found = read_pair(key_path, path, now);
  if (!found && found.error().kind != Kind::not_found) return found.error();
  if (!found) {
    PrivateKey key(EVP_RSA_gen(kKeyBits));
    if (!key) return internal("making the key of notifications: OpenSSL failed");
    const Certificate certificate = TRY(make_certificate(key.get(), now));
    const Bio key_bio(BIO_new(BIO_s_mem())), bio(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_PrivateKey(key_bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
            1 ||
        PEM_write_bio_X509(bio.get(), certificate.get()) != 1)
      return internal("writing the key of notifications: OpenSSL failed");
    // The key is written first: a certificate without its key would be an error at the next start.
    TRY(os::remove_all(path));
    TRY(os::write_file_durably(key_path, text_of(key_bio), 0600));
    TRY(os::write_file_durably(path, text_of(bio), 0644));
    found = std::pair(std::move(key), text_of(bio));
  }
  auto key = std::make_unique<Key>(Key{std::move(found->first)});
  return std::unique_ptr<MessageSigner>(
      new MessageSigner(std::move(key), std::move(found->second)));
}

std::string MessageSigner::sign(std::string_view text) const {
  const Digest context(EVP_MD_CTX_new());
  std::string signature(size_t(EVP_PKEY_get_size(key_->key.get())), '\0');
  size_t length = signature.size();
  const bool good =
      context &&
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_->key.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  CHECK(good, "signing with an RSA key succeeds");
  signature.resize(length);
  return to_base64(signature);
}

}  // namespace trainyard::notify

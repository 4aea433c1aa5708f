// MessageSigner signs notifications with an RSA key of the server (SignatureVersion 2: PKCS#1 v1.5
// with SHA-256). SDKs verify them with the certificate of the SigningCertURL.
//
// Threads: immutable; callable from anywhere. Errors: those of files; corrupt, if the files are not
// a key and its certificate.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::notify {

class MessageSigner {
 public:
  // Reads signing-key.pem (0600) and signing.pem in `directory`. Creates the files, and the
  // directory, if they are missing or the certificate expires within 30 days.
  static Result<std::unique_ptr<MessageSigner>> open(const std::string& directory, Instant now);
  ~MessageSigner();

  std::string sign(std::string_view text) const;                   // base64
  const std::string& certificate() const { return certificate_; }  // PEM
  // Returns the certificate's name: "SimpleNotificationService-<32 hex digits of its SHA-256>.pem".
  const std::string& file_name() const { return file_name_; }

 private:
  struct Key;
  MessageSigner(std::unique_ptr<Key> key, std::string certificate);
  const std::unique_ptr<Key> key_;
  const std::string certificate_, file_name_;
};

}  // namespace trainyard::notify

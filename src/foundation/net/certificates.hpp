// Makes and renews a local certificate authority and a server certificate signed by it, as PEM
// files, and issues certificates to clients.
//
// Threads: callable from anywhere. Errors: internal (OpenSSL's message), and those of files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/tls_identity.hpp"

namespace trainyard::net {

struct CertificatePaths {
  std::string authority;      // ca.pem: the authority that clients trust
  std::string authority_key;  // ca-key.pem, 0600
  std::string certificate;    // server.pem
  std::string key;            // server-key.pem, 0600
};

// Makes the missing files in `directory`. The authority is made once. The certificate of the server
// is made again if it does not cover `names` (DNS names and IP addresses) or expires within 30
// days.
Result<CertificatePaths> ensure_certificates(const std::string& directory,
                                             const std::vector<std::string>& names, Instant now);

// Reads the files of the server's certificate. Errors: those of files.
Result<TlsIdentity> read_server_identity(const CertificatePaths& paths);

// Issues certificates to clients.
class ClientCertificates {
 public:
  virtual ~ClientCertificates() = default;
  // Returns a new key, and a certificate with this common name (at most 64 bytes), valid as long as
  // the authority.
  virtual Result<TlsIdentity> issue(const std::string& common_name, Instant now) const = 0;
};
// Reads the authority. Errors: corrupt.
Result<std::unique_ptr<ClientCertificates>> open_client_certificates(const CertificatePaths& paths);

struct CertificateFacts {
  std::vector<std::string> names;  // DNS names and IP addresses, in the certificate's order
  Instant ends;                    // when it expires
};

// Reads the first certificate of a PEM file. Errors: corrupt.
Result<CertificateFacts> read_certificate(const std::string& path);

}  // namespace trainyard::net

// Makes and renews a local certificate authority and a server certificate signed by it, as PEM
// files.
//
// Threads: callable from anywhere. Errors: internal (OpenSSL's message), and those of files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

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

struct CertificateFacts {
  std::vector<std::string> names;  // DNS names and IP addresses, in the certificate's order
  Instant ends;                    // when it expires
};

// Reads the first certificate of a PEM file. Errors: corrupt.
Result<CertificateFacts> read_certificate(const std::string& path);

}  // namespace trainyard::net

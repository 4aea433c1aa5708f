// TlsIdentity is the certificate of one end of a TLS connection, and the authority that must have
// signed the other end's: texts in PEM.
//
// Threads: plain values.
#pragma once

#include <string>

namespace trainyard::net {

struct TlsIdentity {
  std::string authority;
  std::string certificate;
  std::string key;  // secret
};

}  // namespace trainyard::net

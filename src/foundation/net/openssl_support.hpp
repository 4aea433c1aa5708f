// Owners of OpenSSL's objects, and its errors as ours. Private to this module.
//
// Threads: callable from anywhere; OpenSSL's queue of errors is the thread's.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/tls_identity.hpp"

namespace trainyard::net {

template <auto free>
struct Freer {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using SslContext = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, Freer<SSL_free>>;

// Takes the first error of the queue, which is the cause of the others.
std::string take_openssl_reason();

// Returns the error of a call that returned `result` and neither waits nor has reached the end. Its
// kind: denied (a certificate was rejected, by this end or by the peer), corrupt (the bytes are not
// TLS, or were changed), or that of errno for a failed BIO.
Error tls_error(const std::string& doing, const SSL* ssl, int result);

// Makes the settings of one end: TLS 1.3 only, and the other end's certificate must be of the
// authority. `certificate` and `key` may be empty for a client. Errors: invalid, if the identity is
// not usable.
Result<SslContext> tls_context(const SSL_METHOD* method, const TlsIdentity& identity);

// Makes `ssl` the end of a client, which requires the name or address in the server's certificate.
void connect_to(SSL* ssl, const std::string& server);

}  // namespace trainyard::net

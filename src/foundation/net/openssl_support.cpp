#include "net/openssl_support.hpp"

#include <arpa/inet.h>
#include <openssl/pem.h>

#include <cerrno>

namespace trainyard::net {
namespace {

// Prevents OpenSSL from prompting at the terminal for the passphrase of a key.
int no_passphrase(char*, int, int, void*) { return -1; }

Bio open_text(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), int(text.size())));
}

Certificate read_certificate_text(const std::string& text) {
  return Certificate(PEM_read_bio_X509(open_text(text).get(), nullptr, no_passphrase, nullptr));
}

Result<void> use_identity(SSL_CTX* context, const TlsIdentity& identity) {
  const Certificate authority = read_certificate_text(identity.authority);
  if (!authority || X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1)
    return invalid("reading the certificate of the authority: " + take_openssl_reason());
  if (identity.certificate.empty() && identity.key.empty()) return {};
  const Certificate certificate = read_certificate_text(identity.certificate);
  if (!certificate || SSL_CTX_use_certificate(context, certificate.get()) != 1)
    return invalid("reading the certificate of this end: " + take_openssl_reason());
  const Key key(
      PEM_read_bio_PrivateKey(open_text(identity.key).get(), nullptr, no_passphrase, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return invalid("reading the key of this end's certificate: " + take_openssl_reason());
  return {};
}

bool is_address(const std::string& name) {
  in6_addr ignored;
  return ::inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

}  // namespace

std::string take_openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason ? reason : "no reason given";
}

Error tls_error(const std::string& doing, const SSL* ssl, int result) {
  const int saved = errno;
  const int kind = SSL_get_error(ssl, result);
  if (kind == SSL_ERROR_SYSCALL || kind == SSL_ERROR_ZERO_RETURN) {
    ERR_clear_error();
    if (kind == SSL_ERROR_SYSCALL && saved != 0) return from_errno(doing, saved);
    return unavailable(doing + ": closed by the peer");
  }
  if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK) {
    ERR_clear_error();
    return denied(
        doing + ": the peer's certificate is rejected: " + X509_verify_cert_error_string(verified));
  }
  const bool alert = ERR_GET_REASON(ERR_peek_error()) >= SSL_AD_REASON_OFFSET;
  const std::string reason = take_openssl_reason();
  if (alert) return denied(doing + ": rejected by the peer: " + reason);
  return corrupt(doing + ": " + reason);
}

Result<SslContext> tls_context(const SSL_METHOD* method, const TlsIdentity& identity) {
  SslContext context(SSL_CTX_new(method));
  if (!context) return internal("making the settings of TLS: " + take_openssl_reason());
  TRY(use_identity(context.get(), identity));
  // Both ends are ours. Sessions are not resumed: connections are few and long.
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

void connect_to(SSL* ssl, const std::string& server) {
  SSL_set_connect_state(ssl);
  if (is_address(server)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl, server.c_str());
    SSL_set1_host(ssl, server.c_str());
  }
}

}  // namespace trainyard::net

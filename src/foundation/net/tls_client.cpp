#include "net/tls_client.hpp"

#include <array>

#include "base/check.hpp"
#include "net/openssl_support.hpp"

namespace trainyard::net {
namespace {

constexpr size_t kPlainBytes = 16 << 10;  // the payload of one record

class MemoryTlsClient final : public TlsClient {
 public:
  explicit MemoryTlsClient(Ssl ssl)
      : ssl_(std::move(ssl)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
    CHECK(in_ && out_, "OpenSSL has memory");
    SSL_set_bio(ssl_.get(), in_, out_);  // takes ownership
  }

  Result<bool> shake_hands() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (done == 1) return true;
    if (SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return false;
    return tls_error("the TLS handshake", ssl_.get(), done);
  }

  void feed(std::string_view bytes) override {
    CHECK(BIO_write(in_, bytes.data(), int(bytes.size())) == int(bytes.size()),
          "OpenSSL has memory");
  }

  Result<bool> decrypt(std::string& plain) override {
    std::array<char, kPlainBytes> buffer;
    for (;;) {
      ERR_clear_error();
      size_t got = 0;
      const int done = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got);
      if (done == 1) {
        plain.append(buffer.data(), got);
        continue;
      }
      switch (SSL_get_error(ssl_.get(), done)) {
        case SSL_ERROR_WANT_READ:
          return true;
        case SSL_ERROR_ZERO_RETURN:
          return false;
        default:
          return tls_error("receiving by TLS", ssl_.get(), done);
      }
    }
  }

  Result<void> encrypt(std::string_view plain) override {
    if (plain.empty()) return {};
    ERR_clear_error();
    size_t written = 0;
    const int done = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &written);
    if (done == 1) return {};
    return tls_error("sending by TLS", ssl_.get(), done);
  }

  void end() override {
    ERR_clear_error();
    (void)SSL_shutdown(ssl_.get());
  }

  std::string take_output() override {
    char* data = nullptr;
    const long length = BIO_get_mem_data(out_, &data);
    std::string output(data, size_t(length > 0 ? length : 0));
    (void)BIO_reset(out_);
    return output;
  }

 private:
  const Ssl ssl_;
  BIO* const in_;
  BIO* const out_;
};

class MemoryTlsClients final : public TlsClients {
 public:
  MemoryTlsClients(SslContext context, std::string server)
      : context_(std::move(context)), server_(std::move(server)) {}

  std::unique_ptr<TlsClient> make() const override {
    Ssl ssl(SSL_new(context_.get()));
    CHECK(ssl, "OpenSSL has memory");
    connect_to(ssl.get(), server_);
    return std::make_unique<MemoryTlsClient>(std::move(ssl));
  }

 private:
  const SslContext context_;
  const std::string server_;
};

}  // namespace

Result<std::unique_ptr<TlsClients>> tls_clients(const std::string& authority,
                                                const std::string& server) {
  SslContext context = TRY(tls_context(TLS_client_method(), {authority, "", ""}));
  return std::unique_ptr<TlsClients>(
      std::make_unique<MemoryTlsClients>(std::move(context), server));
}

}  // namespace trainyard::net

#include "net/link_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "net/openssl_support.hpp"

namespace trainyard::net {
namespace {

// The payload of one record.
constexpr size_t kRecordBytes = 16 << 10;
constexpr size_t kNameBytesMax = 256;

class PlainStream final : public LinkStream {
 public:
  explicit PlainStream(int descriptor) : descriptor_(descriptor) {}

  Result<Wait> shake_hands() override { return Wait::nothing; }

  Result<std::optional<size_t>> read(std::span<char> buffer) override {
    const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got >= 0) return std::optional(size_t(got));
    if (errno == EINTR || errno == EAGAIN) return std::optional<size_t>();
    return from_errno("reading from the link");
  }

  Result<size_t> write(std::span<const iovec> parts) override {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    ssize_t sent;
    do sent = ::sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return size_t(sent);
    if (errno == EAGAIN) return size_t(0);
    return from_errno("sending to the link");
  }

  std::string peer_name() const override { return ""; }

 private:
  const int descriptor_;
};

// -- OpenSSL --------------------------------------------------------------------------------------

using BioMethod = std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>>;

// OpenSSL's own BIO for sockets would raise SIGPIPE.
int descriptor_of(BIO* bio) { return int(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int bio_result(BIO* bio, ssize_t result, bool writes) {
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (writes)
      BIO_set_retry_write(bio);
    else
      BIO_set_retry_read(bio);
  }
  return int(result);
}
int write_bio(BIO* bio, const char* bytes, int count) {
  return bio_result(
      bio, ::send(descriptor_of(bio), bytes, size_t(count), MSG_DONTWAIT | MSG_NOSIGNAL), true);
}
int read_bio(BIO* bio, char* bytes, int count) {
  const ssize_t got = ::recv(descriptor_of(bio), bytes, size_t(count), MSG_DONTWAIT);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return bio_result(bio, got, false);
}
long control_bio(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* socket_bio(int descriptor) {
  static const BioMethod method = [] {
    BioMethod made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "link"));
    CHECK(made && BIO_meth_set_write(made.get(), write_bio) &&
              BIO_meth_set_read(made.get(), read_bio) && BIO_meth_set_ctrl(made.get(), control_bio),
          "OpenSSL has memory");
    return made;
  }();
  BIO* bio = BIO_new(method.get());
  CHECK(bio, "OpenSSL has memory");
  BIO_set_data(bio, reinterpret_cast<void*>(intptr_t(descriptor)));
  BIO_set_init(bio, 1);
  return bio;
}

std::string common_name(X509* certificate) {
  std::array<char, kNameBytesMax> name;
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                               name.data(), int(name.size()));
  return length > 0 ? std::string(name.data(), size_t(length)) : "";
}

class TlsStream final : public LinkStream {
 public:
  explicit TlsStream(Ssl ssl) : ssl_(std::move(ssl)) {}

  Result<Wait> shake_hands() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (done == 1) return Wait::nothing;
    switch (SSL_get_error(ssl_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        return Wait::readable;
      case SSL_ERROR_WANT_WRITE:
        return Wait::writable;
      default:
        return tls_error("the TLS handshake", ssl_.get(), done);
    }
  }

  Result<std::optional<size_t>> read(std::span<char> buffer) override {
    CHECK(buffer.size() >= kRecordBytes, "a record fits into the buffer");
    size_t total = 0;
    // Only whole records are read: no event would report the rest of one.
    while (buffer.size() - total >= kRecordBytes) {
      ERR_clear_error();
      size_t got = 0;
      const auto rest = buffer.subspan(total);
      const int done = SSL_read_ex(ssl_.get(), rest.data(), rest.size(), &got);
      if (done == 1) {
        total += got;
        continue;
      }
      // Returns what was read first: the next call returns the end or the error again.
      if (total > 0) break;
      switch (SSL_get_error(ssl_.get(), done)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
          return std::optional<size_t>();
        case SSL_ERROR_ZERO_RETURN:
          return std::optional(size_t(0));
        default:
          return tls_error("reading from the link", ssl_.get(), done);
      }
    }
    return std::optional(total);
  }

  Result<size_t> write(std::span<const iovec> parts) override {
    std::array<char, kRecordBytes> record;
    size_t size = 0;
    for (const iovec& part : parts) {
      const size_t taken = std::min(part.iov_len, record.size() - size);
      std::memcpy(record.data() + size, part.iov_base, taken);
      size += taken;
    }
    ERR_clear_error();
    size_t sent = 0;
    const int done = SSL_write_ex(ssl_.get(), record.data(), size, &sent);
    if (done == 1) return sent;
    switch (SSL_get_error(ssl_.get(), done)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return size_t(0);
      default:
        return tls_error("sending to the link", ssl_.get(), done);
    }
  }

  std::string peer_name() const override {
    const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
    return certificate ? common_name(certificate.get()) : "";
  }

 private:
  const Ssl ssl_;
};

// -- one end --------------------------------------------------------------------------------------

class OpenSslEnd final : public TlsEnd {
 public:
  explicit OpenSslEnd(SslContext context) : context_(std::move(context)) {}

  std::unique_ptr<LinkStream> stream(int descriptor, const std::string& server) const override {
    Ssl ssl(SSL_new(context_.get()));
    CHECK(ssl, "OpenSSL has memory");
    BIO* const bio = socket_bio(descriptor);
    SSL_set_bio(ssl.get(), bio, bio);
    if (server.empty()) {
      SSL_set_accept_state(ssl.get());
    } else {
      connect_to(ssl.get(), server);
    }
    return std::make_unique<TlsStream>(std::move(ssl));
  }

 private:
  const SslContext context_;
};

}  // namespace

std::unique_ptr<LinkStream> plain_stream(int descriptor) {
  return std::make_unique<PlainStream>(descriptor);
}

Result<std::unique_ptr<TlsEnd>> make_tls_end(const TlsIdentity& identity, TlsRole role) {
  SslContext context = TRY(
      tls_context(role == TlsRole::server ? TLS_server_method() : TLS_client_method(), identity));
  // A server has thousands of idle links, which need no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Frames have lengths, so that a connection that ends too early is detected without it.
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  return std::unique_ptr<TlsEnd>(std::make_unique<OpenSslEnd>(std::move(context)));
}

bool starts_tls(std::string_view first_bytes) {
  constexpr char kHandshake = 22, kMajor = 3;
  return first_bytes.size() >= kTlsStartBytes && first_bytes[0] == kHandshake &&
         first_bytes[1] == kMajor && first_bytes[2] >= 1 && first_bytes[2] <= 3;
}

}  // namespace trainyard::net

// Provides a handler and a client for tests of the HTTP server, in this module. The handler runs
// functions of the test; the client sends exactly the given bytes; every byte of a body is computed
// from its index.
//
// Threads: a client is confined to one; the handler's functions are called from the server's
// threads.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "net/certificates.hpp"
#include "net/http_server.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::net {

// TestHandler answers by functions of a test.
struct TestHandler : Handler {
  std::function<Choice(const RequestHead&)> on_choose = [](const RequestHead& head) {
    return Choice{head.path().starts_with("/stream") ? Intake::streamed : Intake::buffered,
                  1 << 20};
  };
  std::function<void(Request, std::unique_ptr<Responder>)> on_handle =
      [](Request request, std::unique_ptr<Responder> responder) {
        Headers headers;
        headers.add("X-Method", request.method);
        responder->reply({200, headers, request.target + "|" + request.body});
      };
  std::function<void(Stream&)> on_stream = [](Stream& stream) {
    stream.reply({200, {}, "streamed"}).value();
  };

  std::function<std::optional<Choice>(const RequestHead&, std::string_view, bool)> on_preface =
      [](const RequestHead&, std::string_view, bool) { return Choice{.tenant = "named"}; };

  Choice choose(const RequestHead& head) override { return on_choose(head); }
  std::optional<Choice> preface(const RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return on_preface(head, bytes, whole);
  }
  void handle(Request request, std::unique_ptr<Responder> responder) override {
    on_handle(std::move(request), std::move(responder));
  }
  void stream(Stream& stream) override { on_stream(stream); }
};

struct Answer {
  int status = 0;
  Headers headers;
  std::string body;
};

// RawClient sends exactly the given bytes, over a plain socket with blocking calls.
class RawClient {
 public:
  // `receive_bytes` is the size of the socket's receive buffer; 0: the default of the system.
  explicit RawClient(uint16_t port, int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVBUF, &receive_bytes,
                   sizeof receive_bytes);
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where),
              0);
    const timeval timeout = {60, 0};  // so that a failing test ends
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }

  // Switches to TLS, trusting only this authority. Returns false if the handshake failed.
  bool start_tls(const std::string& authority) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    EXPECT_EQ(SSL_CTX_load_verify_locations(context_.get(), authority.c_str(), nullptr), 1);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    tls_.reset(SSL_new(context_.get()));
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), "127.0.0.1");
    SSL_set_fd(tls_.get(), socket_.descriptor());
    return SSL_connect(tls_.get()) == 1;
  }

  // Returns the server's certificate as DER. Requires: TLS was started.
  std::string certificate() const {
    X509* shown = SSL_get0_peer_certificate(tls_.get());
    unsigned char* bytes = nullptr;
    const int size = i2d_X509(shown, &bytes);
    std::string out(reinterpret_cast<const char*>(bytes), size > 0 ? size_t(size) : 0);
    OPENSSL_free(bytes);
    return out;
  }

  // Sends bytes. Returns false if the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          tls_ ? SSL_write(tls_.get(), bytes.data(), int(std::min<size_t>(bytes.size(), 1 << 20)))
               : ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(size_t(sent));
    }
    return true;
  }

  std::string receive_some() {
    std::string bytes(64 << 10, 0);
    const ssize_t got = tls_ ? SSL_read(tls_.get(), bytes.data(), int(bytes.size()))
                             : ::recv(socket_.descriptor(), bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? size_t(got) : 0);
    return bytes;
  }

  bool fill() {
    const std::string more = receive_some();
    received_ += more;
    return !more.empty();
  }

  // Receives one whole answer; its status is 0 if the connection ended before.
  Answer receive(bool to_head = false) {
    Answer answer;
    size_t end;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos)
      if (!fill()) return {};
    const std::string head = received_.substr(0, end);
    received_.erase(0, end + 4);
    const std::vector<std::string_view> lines = split(head, '\n');
    answer.status = int(parse_int(lines[0].substr(9, 3)).value());
    for (size_t i = 1; i < lines.size(); i++) {
      const size_t colon = lines[i].find(':');
      answer.headers.add(std::string(lines[i].substr(0, colon)),
                         std::string(trim(lines[i].substr(colon + 1))));
    }
    if (to_head || answer.status == 100 || answer.status == 204 || answer.status == 304)
      return answer;
    if (answer.headers.get("Transfer-Encoding") == "chunked") {
      for (;;) {
        while ((end = received_.find("\r\n")) == std::string::npos)
          if (!fill()) return {};
        const size_t size = std::stoul(received_.substr(0, end), nullptr, 16);
        while (received_.size() < end + 2 + size + 2)
          if (!fill()) return {};
        answer.body += received_.substr(end + 2, size);
        received_.erase(0, end + 2 + size + 2);
        if (size == 0) return answer;
      }
    }
    if (!answer.headers.has("Content-Length")) {
      while (fill()) {
      }
      answer.body = std::exchange(received_, {});
      return answer;
    }
    const size_t size = size_t(parse_int(answer.headers.get("Content-Length")).value());
    while (received_.size() < size)
      if (!fill()) return {};
    answer.body = received_.substr(0, size);
    received_.erase(0, size);
    return answer;
  }

  Answer exchange(std::string_view request) {
    send(request);
    return receive();
  }
  // Returns true if the server closes the connection without sending more bytes.
  bool closed() { return received_.empty() && receive_some().empty(); }
  void close() { socket_.close(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  struct Free {
    void operator()(SSL* tls) const { SSL_free(tls); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  os::File socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> tls_;
  std::string received_;
};

// Returns the byte at an index of a test body.
inline char byte_at(uint64_t place) { return char((place * 31 + place / 4096) % 251); }

inline std::string body_from(uint64_t place, size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; i++) bytes[i] = byte_at(place + i);
  return bytes;
}

inline bool is_body_from(uint64_t place, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); i++)
    if (bytes[i] != byte_at(place + i)) return false;
  return true;
}

inline constexpr uint64_t kLarge = 64 << 20;

// Reads the body of a stream to its end. Returns its length; nullopt if a byte was wrong or the
// connection broke.
inline std::optional<uint64_t> read_body(Stream& stream, size_t buffer_bytes = 16 << 10) {
  std::vector<char> buffer(buffer_bytes);
  uint64_t place = 0;
  for (;;) {
    const auto got = stream.read(buffer);
    if (!got || !is_body_from(place, {buffer.data(), *got})) return std::nullopt;
    if (*got == 0) return place;
    place += *got;
  }
}

inline Result<void> write_body(Stream& stream, uint64_t size, size_t part_bytes = 16 << 10) {
  for (uint64_t place = 0; place < size;) {
    const size_t part = size_t(std::min<uint64_t>(part_bytes, size - place));
    TRY(stream.write(body_from(place, part)));
    place += part;
  }
  return ok();
}

struct Http : testing::Test {
  TestHandler handler;
  HttpSettings settings{.listen = "127.0.0.1:0", .io_threads = 2};
  std::unique_ptr<HttpServer> server;

  void serve() {
    auto served = serve_http(settings, handler);
    ASSERT_TRUE(served) << served.error().message;
    server = std::move(*served);
  }
  RawClient client() { return RawClient(server->port()); }

  void with_tls(Instant made_at = os::MachineClock().now()) {
    tls_directory.emplace();
    const auto made = ensure_certificates(tls_directory->path(), {"127.0.0.1"}, made_at);
    ASSERT_TRUE(made) << made.error().message;
    settings.certificate_file = made->certificate;
    settings.key_file = made->key;
    authority = made->authority;
  }
  std::optional<os::TemporaryDirectory> tls_directory;
  std::string authority;
};

}  // namespace trainyard::net

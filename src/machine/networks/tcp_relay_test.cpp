#include "networks/tcp_relay.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "net/certificates.hpp"
#include "net/testing/http_test_client.hpp"
#include "net/testing/test_socket.hpp"
#include "networks/network_namespace.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::networks {
namespace {

os::File connect_to_relay(uint16_t port) {
  os::File socket = net::test::connect_to(port);
  EXPECT_TRUE(socket) << "no listener at port " << port;
  return socket;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string read_to_end(int socket) {
  std::string bytes;
  char buffer[65536];
  for (ssize_t got; (got = ::read(socket, buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<size_t>(got));
  return bytes;
}

// Echoes the bytes of each connection after the client has ended its direction.
class Echo {
 public:
  Echo() : listener_(*listen_in_namespace("", "127.0.0.1:0")) {
    ::fcntl(listener_.descriptor(), F_SETFL, 0);  // so that accept() blocks
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(*listening_port(listener_)); }
  void answer(int connections) {
    for (int i = 0; i < connections; ++i) {
      const os::File socket(::accept(listener_.descriptor(), nullptr, nullptr));
      send_all(socket.descriptor(), read_to_end(socket.descriptor()));
    }
  }

 private:
  os::File listener_;
};

TEST(TcpRelay, RelaysBothDirectionsAndTheirEnds) {
  Echo echo;
  std::thread server([&] { echo.answer(3); });
  auto listener = listen_in_namespace("", "127.0.0.1:0");
  ASSERT_TRUE(listener) << listener.error().message;
  const uint16_t port = *listening_port(*listener);
  const auto relay = relay_tcp(std::move(*listener), echo.address());
  ASSERT_TRUE(relay);
  for (const size_t size : {size_t{1}, size_t{100'000}, size_t{5'000'000}}) {
    const auto socket = connect_to_relay(port);
    const std::string bytes(size, 'b');
    send_all(socket.descriptor(), bytes);
    ::shutdown(socket.descriptor(), SHUT_WR);
    EXPECT_EQ(read_to_end(socket.descriptor()), bytes);
  }
  server.join();
}

TEST(TcpRelay, ClosesTheConnectionIfTheTargetIsUnreachable) {
  auto listener = listen_in_namespace("", "127.0.0.1:0");
  const uint16_t port = *listening_port(*listener);
  uint16_t closed_port;
  {
    const auto free = listen_in_namespace("", "127.0.0.1:0");
    closed_port = *listening_port(*free);
  }
  const auto relay = relay_tcp(std::move(*listener), "127.0.0.1:" + std::to_string(closed_port));
  ASSERT_TRUE(relay);
  const auto socket = connect_to_relay(port);
  EXPECT_EQ(read_to_end(socket.descriptor()), "");
}

// Relays to an HTTPS server.
struct TlsRelay : testing::Test {
  os::TemporaryDirectory directory;
  const Instant now = os::MachineClock().now();
  const net::CertificatePaths paths =
      *net::ensure_certificates(directory.path() + "/tls", {"127.0.0.1", "localhost"}, now);
  const std::string authority = *os::read_file(paths.authority);
  net::TestHandler handler;
  std::unique_ptr<net::HttpServer> server;
  std::unique_ptr<TcpRelay> relay;

  void SetUp() override {
    net::HttpSettings settings;
    settings.listen = "127.0.0.1:0";
    settings.plain_http = net::PlainHttp::none;
    settings.certificate_file = paths.certificate;
    settings.key_file = paths.key;
    handler.on_choose = [](const net::RequestHead&) {
      return net::Handler::Choice{net::Intake::buffered, 16 << 20};
    };
    server = std::move(*net::serve_http(settings, handler));
  }
  // Returns a connection to a relay of the server.
  os::File connect(const std::string& host, const std::string& trusted) {
    auto listener = listen_in_namespace("", "127.0.0.1:0");
    const uint16_t port = *listening_port(*listener);
    auto made =
        relay_tcp(std::move(*listener), host + ":" + std::to_string(server->port()), trusted);
    EXPECT_TRUE(made) << made.error().message;
    relay = std::move(*made);
    return connect_to_relay(port);
  }
};

TEST_F(TlsRelay, EncryptsRequestsOfAnySize) {
  const os::File socket = connect("localhost", authority);
  for (const size_t size : {0, 1, 16'384, 100'000, 5'000'000}) {
    const std::string body(size, char('a' + size % 7));
    send_all(socket.descriptor(),
             "POST /x HTTP/1.1\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" + body);
    std::string answer;
    char buffer[65536];
    while (answer.size() < size || !answer.ends_with("/x|" + body)) {
      const ssize_t got = ::read(socket.descriptor(), buffer, sizeof buffer);
      ASSERT_GT(got, 0) << size;
      answer.append(buffer, size_t(got));
    }
  }
}

TEST_F(TlsRelay, ForwardsTheEndOfEachDirection) {
  const os::File socket = connect("127.0.0.1", authority);
  send_all(socket.descriptor(), "GET /last HTTP/1.1\r\n\r\n");
  ::shutdown(socket.descriptor(), SHUT_WR);
  EXPECT_TRUE(read_to_end(socket.descriptor()).ends_with("/last|"));
}

TEST_F(TlsRelay, ClosesTheConnectionIfTheCertificateIsRejected) {
  const auto others = net::ensure_certificates(directory.path() + "/others", {"127.0.0.1"}, now);
  const os::File wrong_authority = connect("127.0.0.1", *os::read_file(others->authority));
  EXPECT_EQ(read_to_end(wrong_authority.descriptor()), "");
  const os::File wrong_name = connect("127.0.0.2", authority);
  EXPECT_EQ(read_to_end(wrong_name.descriptor()), "");
  EXPECT_EQ(relay_tcp(os::File(), "127.0.0.1:1", "no certificate").error().kind, Kind::invalid);
}

TEST_F(TlsRelay, ClosesTheConnectionIfTheTargetHasNoTls) {
  os::File target = *listen_in_namespace("", "127.0.0.1:0");
  ::fcntl(target.descriptor(), F_SETFL, 0);  // so that accept() blocks
  auto listener = listen_in_namespace("", "127.0.0.1:0");
  const uint16_t port = *listening_port(*listener);
  const auto made = relay_tcp(std::move(*listener),
                              "127.0.0.1:" + std::to_string(*listening_port(target)), authority);
  ASSERT_TRUE(made);
  const auto socket = connect_to_relay(port);
  const os::File accepted(::accept(target.descriptor(), nullptr, nullptr));
  send_all(accepted.descriptor(), "HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(read_to_end(socket.descriptor()), "");
}

TEST(TcpRelay, CanBeDestroyedWithOpenConnections) {
  Echo echo;
  auto listener = listen_in_namespace("", "127.0.0.1:0");
  const uint16_t port = *listening_port(*listener);
  auto relay = relay_tcp(std::move(*listener), echo.address());
  const auto first = connect_to_relay(port);
  const auto second = connect_to_relay(port);
  relay->reset();
  EXPECT_EQ(read_to_end(first.descriptor()), "");
}

TEST(NetworkNamespace, ReportsErrors) {
  EXPECT_EQ(listen_in_namespace("/nowhere", "127.0.0.1:0").error().kind, Kind::not_found);
  EXPECT_EQ(listen_in_namespace("", "localhost:1").error().kind, Kind::invalid);
  EXPECT_EQ(listen_in_namespace("", "127.0.0.1").error().kind, Kind::invalid);
  EXPECT_FALSE(relay_tcp(os::File(), "nowhere"));
}

}  // namespace
}  // namespace trainyard::networks

#include "networks/tcp_relay.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "net/testing/test_socket.hpp"
#include "networks/network_namespace.hpp"

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

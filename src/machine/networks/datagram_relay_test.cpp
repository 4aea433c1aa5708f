#include "networks/datagram_relay.hpp"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio.hpp>

namespace trainyard::networks {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;

constexpr Address kHere = 0x7f000001;

// A socket of the test. Receiving has a timeout.
class UdpSocket {
 public:
  explicit UdpSocket(uint16_t port = 0)
      : socket_(context_, udp::endpoint(asio::ip::address_v4(kHere), port)) {
    const timeval limit{30, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  uint16_t port() const { return socket_.local_endpoint().port(); }
  void send(const std::string& text, Address address, uint16_t port) {
    socket_.send_to(asio::buffer(text), {asio::ip::address_v4(address), port});
  }
  std::string receive() {
    std::array<char, 2000> buffer{};
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    return got < 0 ? "nothing" : std::string(buffer.data(), size_t(got));
  }

 private:
  asio::io_context context_;
  udp::socket socket_;
};

uint16_t free_udp_port() { return UdpSocket().port(); }

// Two hosts, whose tunnels are sockets of the test, in one namespace.
class DatagramRelayTest : public testing::Test {
 protected:
  std::unique_ptr<DatagramRelay> relay(size_t own) {
    DatagramRelaySpec spec;
    spec.endpoints = {{kHere, ports_[0]}, {kHere, ports_[1]}};
    spec.own = own;
    spec.tunnel_port = tunnels_[own].port();
    spec.peer_port = peer_port_;
    auto made = relay_datagrams(spec);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  const std::array<uint16_t, 2> ports_ = {free_udp_port(), free_udp_port()};
  const uint16_t peer_port_ = free_udp_port();
  std::array<UdpSocket, 2> tunnels_;
};

TEST_F(DatagramRelayTest, RelaysDatagramsInBothDirections) {
  const auto first = relay(0), second = relay(1);
  tunnels_[0].send("one", loopback_of_peer(1), peer_port_);
  EXPECT_EQ(tunnels_[1].receive(), "one");
  tunnels_[1].send("two", loopback_of_peer(0), peer_port_);
  EXPECT_EQ(tunnels_[0].receive(), "two");
}

TEST_F(DatagramRelayTest, DropsDatagramsOfOtherSenders) {
  const auto first = relay(0), second = relay(1);
  UdpSocket other;
  other.send("of another process of the node", kHere, ports_[1]);
  other.send("of a program of the job", loopback_of_peer(1), peer_port_);
  tunnels_[0].send("of the tunnel", loopback_of_peer(1), peer_port_);
  EXPECT_EQ(tunnels_[1].receive(), "of the tunnel");
}

TEST_F(DatagramRelayTest, ErrorsNameThePortInUse) {
  const auto first = relay(0);
  DatagramRelaySpec spec;
  spec.endpoints = {{kHere, ports_[0]}, {kHere, ports_[1]}};
  const auto again = relay_datagrams(spec);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find(":" + std::to_string(ports_[0])), std::string::npos)
      << again.error().message;
  spec.own = 2;
  EXPECT_EQ(relay_datagrams(spec).error().kind, Kind::invalid);
}

TEST(NodeEndpoints, ParsesAddressesWithPorts) {
  EXPECT_EQ(*parse_endpoints("10.0.0.1:20000,10.0.0.2:20001"),
            (std::vector<NodeEndpoint>{{0x0a000001, 20000}, {0x0a000002, 20001}}));
  for (const char* wrong :
       {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "n1:1", "10.0.0.1:1,", ":1"})
    EXPECT_EQ(parse_endpoints(wrong).error().kind, Kind::invalid) << wrong;
}

}  // namespace
}  // namespace trainyard::networks

// Tests links with TLS, with peers that lack the right certificate, and without TLS.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "net/certificates.hpp"
#include "net/link.hpp"
#include "net/testing/seen_links.hpp"
#include "net/testing/test_socket.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::net {
namespace {

struct TlsLinks : testing::Test {
  os::TemporaryDirectory directory;
  SeenLinks server, client;
  const Instant now = os::MachineClock().now();

  CertificatePaths authority(const std::string& name, Instant at) {
    return *ensure_certificates(directory.path() + "/" + name, {"127.0.0.1", "localhost"}, at);
  }
  const CertificatePaths ours = authority("ours", now);
  const TlsIdentity server_identity = *read_server_identity(ours);
  const TlsIdentity agent = issue(ours, "agent of j7a1", now);

  static TlsIdentity issue(const CertificatePaths& paths, const std::string& name, Instant at) {
    return *(*open_client_certificates(paths))->issue(name, at);
  }

  std::unique_ptr<LinkListener> listen(LinkLimits limits = {}) {
    auto listener = listen_links("tcp:127.0.0.1:0", server.events(), limits, server_identity);
    EXPECT_TRUE(listener) << listener.error().message;
    return std::move(*listener);
  }
  static uint16_t port_of(const LinkListener& listener) {
    const std::string address = listener.address();
    return uint16_t(std::stoi(address.substr(address.rfind(':') + 1)));
  }
};

TEST_F(TlsLinks, TransferFramesInBothDirectionsInOrder) {
  server.echoes = true;
  const auto listener = listen();
  const auto connected = connect_link(listener->address(), client.events(), {}, agent);
  ASSERT_TRUE(connected) << connected.error().message;
  std::vector<std::string> sent;
  for (const size_t size : {0, 1, 4, 100, 16'380, 16'384, 16'385, 70'000, 3'000'000})
    sent.emplace_back(size, char('a' + sent.size()));
  for (const std::string& frame : sent) (*connected)->link()->send(frame);
  ASSERT_TRUE(client.wait_for_frames(sent.size()));
  EXPECT_TRUE(client.frames() == sent);
  EXPECT_EQ(server.link()->peer_name(), "agent of j7a1");
  EXPECT_EQ(client.link()->peer_name(), "Trainyard server");
  server.link()->close();
  ASSERT_TRUE(client.wait_for_closed(1));
  EXPECT_EQ(client.why().kind, Kind::unavailable);
}

TEST_F(TlsLinks, AcceptTheNameOfTheServer) {
  const auto listener = listen();
  const auto connected = connect_link("tcp:localhost:" + std::to_string(port_of(*listener)),
                                      client.events(), {}, agent);
  ASSERT_TRUE(connected) << connected.error().message;
  (*connected)->link()->send("hello");
  EXPECT_TRUE(server.wait_for_frames(1));
}

// A link without TLS of an agent of an earlier release.
TEST_F(TlsLinks, AcceptPlainLinksWithoutAName) {
  const auto listener = listen();
  const auto connected = connect_link(listener->address(), client.events());
  ASSERT_TRUE(connected) << connected.error().message;
  // As the length of a frame, these bytes begin as a TLS record does.
  const std::string frame(0x0316, 'x');
  (*connected)->link()->send(frame);
  ASSERT_TRUE(server.wait_for_frames(1));
  EXPECT_EQ(server.frames(), std::vector<std::string>{frame});
  EXPECT_EQ(server.link()->peer_name(), "");
}

TEST_F(TlsLinks, RejectClientsWithoutACertificateOfTheAuthority) {
  const auto listener = listen();
  const CertificatePaths theirs = authority("theirs", now);
  TlsIdentity forged = issue(theirs, "agent of j7a1", now), none = agent;
  forged.authority = agent.authority;  // it trusts the server
  none.certificate = none.key = "";
  // The server's own certificate is not one of a client.
  for (const TlsIdentity& identity : {forged, none, server_identity}) {
    SeenLinks seen;
    const auto connected = connect_link(listener->address(), seen.events(), {}, identity);
    // The server verifies the certificate after the client's part of the handshake.
    ASSERT_TRUE(connected) << connected.error().message;
    (*connected)->link()->send("hello");
    ASSERT_TRUE(seen.wait_for_closed(1));
  }
  EXPECT_EQ(server.link_count(), 0u);
}

TEST_F(TlsLinks, RejectServersOfOtherAuthoritiesNamesAndTimes) {
  const CertificatePaths theirs = authority("theirs", now);
  const auto fake =
      listen_links("tcp:127.0.0.1:0", server.events(), {}, *read_server_identity(theirs));
  ASSERT_TRUE(fake);
  const auto refused = connect_link((*fake)->address(), {}, {}, agent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
  EXPECT_NE(refused.error().message.find("certificate is rejected"), std::string::npos)
      << refused.error().message;

  const auto elsewhere = *ensure_certificates(directory.path() + "/ours", {"elsewhere"}, now);
  const auto wrong_name =
      listen_links("tcp:127.0.0.1:0", server.events(), {}, *read_server_identity(elsewhere));
  EXPECT_EQ(connect_link((*wrong_name)->address(), {}, {}, agent).error().kind, Kind::denied);

  const CertificatePaths future = authority("future", now + 48h);
  const auto early =
      listen_links("tcp:127.0.0.1:0", server.events(), {}, *read_server_identity(future));
  const auto not_yet = connect_link((*early)->address(), {}, {}, issue(future, "agent", now + 48h));
  ASSERT_FALSE(not_yet);
  EXPECT_NE(not_yet.error().message.find("not yet valid"), std::string::npos)
      << not_yet.error().message;
}

// A new certificate is valid for ends whose clock is behind by up to a day.
TEST_F(TlsLinks, AcceptCertificatesOfClocksThatAreHoursAhead) {
  const CertificatePaths ahead = authority("ahead", now + 20h);
  const auto listener =
      listen_links("tcp:127.0.0.1:0", server.events(), {}, *read_server_identity(ahead));
  ASSERT_TRUE(listener);
  const auto connected =
      connect_link((*listener)->address(), client.events(), {}, issue(ahead, "agent", now + 20h));
  ASSERT_TRUE(connected) << connected.error().message;
  (*connected)->link()->send("hello");
  EXPECT_TRUE(server.wait_for_frames(1));
}

TEST_F(TlsLinks, ReportServersWithoutTls) {
  const auto plain = listen_links("tcp:127.0.0.1:0", server.events(), {.greeting_max = 50ms});
  ASSERT_TRUE(plain);
  const auto refused = connect_link((*plain)->address(), {}, {}, agent);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("TLS"), std::string::npos) << refused.error().message;
}

TEST_F(TlsLinks, EndHandshakesThatStall) {
  const auto listener = listen({.greeting_max = 20ms});
  const os::File none = test::connect_to(port_of(*listener));
  const os::File part = test::connect_to(port_of(*listener));
  ASSERT_EQ(::send(part.descriptor(), "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
  char byte;
  for (const os::File* stalled : {&none, &part})
    EXPECT_LE(::recv(stalled->descriptor(), &byte, 1, 0), 0);
  EXPECT_EQ(server.link_count(), 0u);

  os::File silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(::bind(silent.descriptor(), reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(::listen(silent.descriptor(), 1), 0);
  ::getsockname(silent.descriptor(), reinterpret_cast<sockaddr*>(&name), &length);
  const auto refused = connect_link("tcp:127.0.0.1:" + std::to_string(ntohs(name.sin_port)), {},
                                    {.greeting_max = 20ms}, agent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::unavailable);
}

TEST_F(TlsLinks, InvalidHandshakesEndOnlyTheirConnection) {
  const auto listener = listen();
  for (const std::string_view garbage : {std::string_view("\x16\x03\x01\xff\xff garbage"),
                                         std::string_view("\x16\x03\x01\0\x05hello", 10),
                                         std::string_view("\x16\x03"), std::string_view("")}) {
    const os::File peer = test::connect_to(port_of(*listener));
    ASSERT_EQ(::send(peer.descriptor(), garbage.data(), garbage.size(), MSG_NOSIGNAL),
              ssize_t(garbage.size()));
    ::shutdown(peer.descriptor(), SHUT_WR);
    char buffer[256];
    while (::recv(peer.descriptor(), buffer, sizeof buffer, 0) > 0) continue;
  }
  const auto connected = connect_link(listener->address(), client.events(), {}, agent);
  ASSERT_TRUE(connected) << connected.error().message;
  (*connected)->link()->send("hello");
  EXPECT_TRUE(server.wait_for_frames(1));
  EXPECT_EQ(server.link_count(), 1u);
}

TEST_F(TlsLinks, NewLinksUseARenewedCertificate) {
  const auto listener = listen();
  const auto before = connect_link(listener->address(), client.events(), {}, agent);
  ASSERT_TRUE(before) << before.error().message;
  const auto elsewhere = *ensure_certificates(directory.path() + "/ours", {"elsewhere"}, now);
  ASSERT_TRUE(listener->renew(*read_server_identity(elsewhere)));
  EXPECT_EQ(connect_link(listener->address(), {}, {}, agent).error().kind, Kind::denied);
  EXPECT_EQ(listener->renew({"no certificate", "", ""}).error().kind, Kind::invalid);
  (*before)->link()->send("existing links continue");
  EXPECT_TRUE(server.wait_for_frames(1));
}

TEST_F(TlsLinks, ServeManyLinksAndManySenders) {
  server.echoes = true;
  constexpr size_t kLinks = 20, kFrames = 30;
  const auto listener = listen();
  std::vector<std::unique_ptr<LinkClient>> clients;
  for (size_t i = 0; i < kLinks; i++) {
    auto connected = connect_link(listener->address(), client.events(), {}, agent);
    ASSERT_TRUE(connected) << connected.error().message;
    clients.push_back(std::move(*connected));
  }
  std::vector<std::thread> senders;
  for (size_t t = 0; t < 4; t++)
    senders.emplace_back([&] {
      for (size_t i = 0; i < kFrames; i++)
        for (const auto& each : clients) each->link()->send(std::string(i * 1'700, 'f'));
    });
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(client.wait_for_frames(4 * kLinks * kFrames));
  clients.clear();
  EXPECT_TRUE(server.wait_for_closed(kLinks));
  EXPECT_EQ(client.late() + server.late(), 0u);
}

}  // namespace
}  // namespace trainyard::net

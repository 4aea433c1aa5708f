#include "net/link.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/random.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/testing/seen_links.hpp"
#include "net/testing/test_socket.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::net {
namespace {

struct Links : testing::Test {
  os::TemporaryDirectory directory;
  SeenLinks server, client;
  std::string address = "unix:" + directory.path() + "/socket";
};

const std::string kEmptyFrame(4, '\0');

// RawPeer sends any bytes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) {
    sockaddr_un where = {};
    where.sun_family = AF_UNIX;
    address.copy(where.sun_path, sizeof where.sun_path - 1, 5);
    socket_ = os::File(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where),
              0);
  }
  void send_bytes(std::string_view bytes) {
    EXPECT_EQ(::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              ssize_t(bytes.size()));
  }
  std::string receive_bytes(size_t bytes_max) {
    std::string bytes(bytes_max, 0);
    const ssize_t got = ::recv(socket_.descriptor(), bytes.data(), bytes_max, 0);
    bytes.resize(got > 0 ? size_t(got) : 0);
    return bytes;
  }
  void close() { socket_.close(); }

 private:
  os::File socket_;
};

TEST_F(Links, TransferFramesInBothDirectionsInOrder) {
  for (const std::string& where : {address, std::string("tcp:127.0.0.1:0")}) {
    SeenLinks here, there;
    const auto listener = listen_links(where, here.events());
    ASSERT_TRUE(listener) << listener.error().message;
    const auto connected = connect_link((*listener)->address(), there.events());
    ASSERT_TRUE(connected) << connected.error().message;
    const std::string large(3'000'000, 'x');
    (*connected)->link()->send("one");
    (*connected)->link()->send("");
    (*connected)->link()->send(large);
    ASSERT_TRUE(here.wait_for_frames(3));
    EXPECT_EQ(here.frames(), (std::vector<std::string>{"one", "", large}));
    here.link()->send("answer");
    ASSERT_TRUE(there.wait_for_frames(1));
    EXPECT_EQ(there.frames(), std::vector<std::string>{"answer"});
    here.link()->close();
    ASSERT_TRUE(there.wait_for_closed(1));
    ASSERT_TRUE(here.wait_for_closed(1));
    EXPECT_EQ(there.why().kind, Kind::unavailable);
    EXPECT_EQ(here.why().kind, Kind::cancelled);
    here.link()->send("into the void");
  }
}

TEST_F(Links, AcceptLongPathsAndOnlyTheOwnerMayConnect) {
  const std::string folder =
      directory.path() + "/" + std::string(120, 'a') + "/" + std::string(120, 'b');
  ASSERT_TRUE(os::make_directories(folder));
  const std::string path = folder + "/socket";
  {
    const auto listener = listen_links("unix:" + path, server.events());
    ASSERT_TRUE(listener) << listener.error().message;
    struct stat status;
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    const auto connected = connect_link("unix:" + path, client.events());
    ASSERT_TRUE(connected) << connected.error().message;
    (*connected)->link()->send("hello");
    ASSERT_TRUE(server.wait_for_frames(1));
    EXPECT_EQ(listen_links("unix:" + path, {}).error().kind, Kind::conflict)
        << "another process listens there";
  }
  EXPECT_FALSE(os::exists(path));
}

TEST_F(Links, ReplaceTheSocketFileOfADeadServer) {
  const os::File left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  address.copy(where.sun_path, sizeof where.sun_path - 1, 5);
  ASSERT_EQ(::bind(left.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  EXPECT_EQ(connect_link(address, {}).error().kind, Kind::unavailable);
  EXPECT_TRUE(listen_links(address, {}));
  ASSERT_TRUE(os::write_file(directory.path() + "/file", "precious"));
  EXPECT_EQ(listen_links("unix:" + directory.path() + "/file", {}).error().kind, Kind::conflict);
  EXPECT_EQ(*os::read_file(directory.path() + "/file"), "precious");
}

TEST_F(Links, AnUnreachableAddressIsAnError) {
  EXPECT_EQ(connect_link(address, {}).error().kind, Kind::not_found);
  EXPECT_EQ(connect_link("tcp:127.0.0.1:1", {}).error().kind, Kind::unavailable);
  EXPECT_EQ(connect_link("carrier-pigeon", {}).error().kind, Kind::invalid);
  EXPECT_EQ(listen_links("tcp:127.0.0.1", {}).error().kind, Kind::invalid);
  EXPECT_EQ(listen_links("unix:", {}).error().kind, Kind::invalid);
}

TEST_F(Links, InvalidLengthsCloseTheLinkAfterCompleteFrames) {
  const auto listener = listen_links(address, server.events(), {.frame_bytes_max = 1000});
  ASSERT_TRUE(listener);
  RawPeer peer(address);
  peer.send_bytes(std::string("\x02\0\0\0ok\xff\xff\xff\xff and more", 19));
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.why().kind, Kind::corrupt);
  EXPECT_EQ(server.frames(), std::vector<std::string>{"ok"});
  EXPECT_EQ(server.late(), 0u);
}

TEST_F(Links, AcceptFramesByteByByte) {
  const auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  RawPeer peer(address);
  for (const char byte : std::string("\x03\0\0\0abc\0\0\0\0\x01\0\0\0z", 16))
    peer.send_bytes(std::string(1, byte));
  ASSERT_TRUE(server.wait_for_frames(3));
  EXPECT_EQ(server.frames(), (std::vector<std::string>{"abc", "", "z"}));
}

TEST_F(Links, APeerThatDiesWithinAFrameDeliversNoPartOfIt) {
  const auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  RawPeer peer(address);
  peer.send_bytes(std::string("\x10\0\0\0half", 8));
  peer.close();
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.why().kind, Kind::unavailable);
  EXPECT_NE(server.why().message.find("within a frame"), std::string::npos);
  EXPECT_TRUE(server.frames().empty());
}

TEST_F(Links, ASenderFasterThanTheReaderIsClosedAndNeverBlocks) {
  const auto listener = listen_links(address, server.events(), {.queue_bytes_max = 1 << 20});
  ASSERT_TRUE(listener);
  RawPeer peer(address);  // reads nothing
  ASSERT_TRUE(server.wait_for_links(1));
  const std::string frame(10'000, 'x');
  for (int i = 0; i < 1000 && server.closed_count() == 0; i++) server.link()->send(frame);
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.why().kind, Kind::exhausted);
}

TEST_F(Links, SendFramesThatExceedTheKernelsBuffer) {
  const auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  RawPeer peer(address);
  ASSERT_TRUE(server.wait_for_links(1));
  std::string expected;
  for (int i = 0; i < 300; i++) {
    const std::string frame(9'000 + size_t(i), char('a' + i % 26));
    server.link()->send(frame);
    for (size_t byte = 0; byte < 4; byte++) expected += char(frame.size() >> (8 * byte));
    expected += frame;
  }
  std::string received;
  while (received.size() < expected.size()) {
    const std::string part = peer.receive_bytes(50'000);
    ASSERT_FALSE(part.empty());
    received += part;
  }
  EXPECT_TRUE(received == expected);
}

TEST_F(Links, AFrameBeyondTheLimitIsNotSent) {
  const auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  const auto connected = connect_link(address, client.events(), {.frame_bytes_max = 10});
  ASSERT_TRUE(connected);
  (*connected)->link()->send("0123456789");
  (*connected)->link()->send("0123456789+");
  ASSERT_TRUE(client.wait_for_closed(1));
  EXPECT_EQ(client.why().kind, Kind::invalid);
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.frames(), std::vector<std::string>{"0123456789"});
}

TEST_F(Links, LinksBeyondTheLimitAreRejected) {
  const auto listener = listen_links(address, server.events(), {.links_max = 2});
  ASSERT_TRUE(listener);
  RawPeer first(address), second(address);
  for (RawPeer* peer : {&first, &second}) peer->send_bytes(kEmptyFrame);
  ASSERT_TRUE(server.wait_for_frames(2));
  RawPeer third(address);
  EXPECT_EQ(third.receive_bytes(1), "");
  first.close();
  ASSERT_TRUE(server.wait_for_closed(1));
  RawPeer fourth(address);
  EXPECT_TRUE(server.wait_for_links(3));
}

TEST_F(Links, ANewOneReplacesTheOldestWithoutAFrame) {
  const auto listener = listen_links(address, server.events(), {.links_max = 3});
  ASSERT_TRUE(listener);
  RawPeer agent(address), idle(address), another(address);
  ASSERT_TRUE(server.wait_for_links(3));
  agent.send_bytes(kEmptyFrame);
  ASSERT_TRUE(server.wait_for_frames(1));
  RawPeer fourth(address);
  EXPECT_EQ(idle.receive_bytes(1), "");
  ASSERT_TRUE(server.wait_for_links(4));
  EXPECT_EQ(server.closed_count(), 1u);
  EXPECT_EQ(server.why().message, "there are too many links");
}

TEST_F(Links, EndPeersThatNeverSendAFrame) {
  const auto listener = listen_links(address, server.events(), {.greeting_max = 20ms});
  ASSERT_TRUE(listener);
  RawPeer silent(address);
  silent.send_bytes(std::string("\x10\0\0\0half", 8));
  ASSERT_TRUE(server.wait_for_closed(1));
  EXPECT_EQ(server.why().kind, Kind::unavailable);
  EXPECT_EQ(silent.receive_bytes(1), "");
}

// The frames of other peers wait while an event of one link takes longer than they may.
TEST_F(Links, KeepPeersWhoseFirstFrameWaitsForThisEnd) {
  LinkEvents events = server.events();
  std::atomic<bool> slow = true;
  events.frame = [&, frame = events.frame](const std::shared_ptr<Link>& link, std::string bytes) {
    if (slow.exchange(false)) std::this_thread::sleep_for(7s);
    frame(link, std::move(bytes));
  };
  const auto listener = listen_links(address, events, {.greeting_max = 6s});
  ASSERT_TRUE(listener);
  constexpr size_t kPeers = 80;  // more than one look takes
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (size_t i = 0; i < kPeers; i++) {
    peers.push_back(std::make_unique<RawPeer>(address));
    peers.back()->send_bytes(kEmptyFrame);
  }
  EXPECT_TRUE(server.wait_for_frames(kPeers));
  EXPECT_EQ(server.closed_count(), 0u);
}

TEST_F(Links, KeepIdlePeersThatHaveSentAFrame) {
  const auto listener = listen_links(address, server.events(), {.greeting_max = 3s});
  ASSERT_TRUE(listener);
  RawPeer agent(address);
  agent.send_bytes(kEmptyFrame);
  ASSERT_TRUE(server.wait_for_frames(1));
  RawPeer silent(address);  // is closed after the time of the other has passed, too
  ASSERT_TRUE(server.wait_for_closed(1));
  agent.send_bytes(kEmptyFrame);
  EXPECT_TRUE(server.wait_for_frames(2));
}

TEST_F(Links, ServeManyLinksAndManySenders) {
  server.echoes = true;
  constexpr size_t kLinks = 100, kFrames = 50;
  const auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  std::vector<std::unique_ptr<LinkClient>> clients;
  for (size_t i = 0; i < kLinks; i++) {
    auto connected = connect_link(address, client.events());
    ASSERT_TRUE(connected) << connected.error().message;
    clients.push_back(std::move(*connected));
  }
  std::vector<std::thread> senders;
  for (size_t t = 0; t < 4; t++)
    senders.emplace_back([&] {
      for (size_t i = 0; i < kFrames; i++)
        for (const auto& each : clients) each->link()->send(std::string(i * 7, 'f'));
    });
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(client.wait_for_frames(4 * kLinks * kFrames));
  EXPECT_EQ(server.echoed(), 4 * kLinks * kFrames);
  clients.clear();
  EXPECT_TRUE(server.wait_for_closed(kLinks));
  EXPECT_EQ(client.late() + server.late(), 0u);
}

TEST_F(Links, StoppingTheListenerClosesItsLinksAndReportsIt) {
  auto listener = listen_links(address, server.events());
  ASSERT_TRUE(listener);
  const auto connected = connect_link(address, client.events());
  ASSERT_TRUE(connected);
  ASSERT_TRUE(server.wait_for_links(1));
  const std::shared_ptr<Link> outlives = server.link();
  listener->reset();
  EXPECT_EQ(server.closed_count(), 1u);
  EXPECT_EQ(server.why().kind, Kind::cancelled);
  ASSERT_TRUE(client.wait_for_closed(1));
  outlives->send("nobody is there");
  outlives->close();
}

TEST_F(Links, HandlersMaySendAndClose) {
  LinkEvents events = server.events();
  events.opened = [](const std::shared_ptr<Link>& link) { link->send("welcome"); };
  events.frame = [](const std::shared_ptr<Link>& link, std::string) {
    link->send("goodbye");
    link->close();
    link->send("unheard");
  };
  const auto listener = listen_links(address, events);
  ASSERT_TRUE(listener);
  const auto connected = connect_link(address, client.events());
  ASSERT_TRUE(connected);
  (*connected)->link()->send("a");
  (*connected)->link()->send("b");
  ASSERT_TRUE(client.wait_for_closed(1));
  EXPECT_EQ(client.frames(), (std::vector<std::string>{"welcome", "goodbye"}));
  EXPECT_TRUE(server.wait_for_closed(1));
}

// Runs in a network whose only interface is shut down, so packets are lost without a notification.
struct VanishingPeers : Links {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  }
  static constexpr LinkLimits kSoon = {.dead_peer = {.idle = 1s, .interval = 1s, .dead_after = 3s}};
};

TEST_F(VanishingPeers, EndTheirIdleLinks) {
  test::in_own_network([&] {
    const auto listener = listen_links("tcp:127.0.0.1:0", server.events(), kSoon);
    ASSERT_TRUE(listener) << listener.error().message;
    const auto connected = connect_link((*listener)->address(), client.events(), kSoon);
    ASSERT_TRUE(connected) << connected.error().message;
    (*connected)->link()->send("hello");
    ASSERT_TRUE(server.wait_for_frames(1));
    test::set_loopback(0);
    EXPECT_TRUE(server.wait_for_closed(1));
    EXPECT_TRUE(client.wait_for_closed(1));
    EXPECT_EQ(server.why().kind, Kind::unavailable) << server.why().message;
    EXPECT_EQ(client.why().kind, Kind::unavailable) << client.why().message;
  });
}

// Keepalive does not probe while bytes are unacknowledged.
TEST_F(VanishingPeers, EndTheirLinksWithUnsentFrames) {
  test::in_own_network([&] {
    const auto listener = listen_links("tcp:127.0.0.1:0", server.events(), kSoon);
    ASSERT_TRUE(listener) << listener.error().message;
    const auto connected = connect_link((*listener)->address(), client.events(), kSoon);
    ASSERT_TRUE(connected) << connected.error().message;
    ASSERT_TRUE(server.wait_for_links(1));
    test::set_loopback(0);
    server.link()->send("into the void");
    (*connected)->link()->send("into the void");
    EXPECT_TRUE(server.wait_for_closed(1));
    EXPECT_TRUE(client.wait_for_closed(1));
    EXPECT_EQ(server.why().kind, Kind::unavailable) << server.why().message;
    EXPECT_EQ(client.why().kind, Kind::unavailable) << client.why().message;
  });
}

// Peers send random bytes: every link is closed once, and the listener keeps running.
TEST_F(Links, SurviveRandomPeers) {
  const auto listener = listen_links(address, server.events(), {.frame_bytes_max = 4096});
  ASSERT_TRUE(listener);
  SeededRandom random(20261120);
  constexpr size_t kPeers = 200;
  for (size_t i = 0; i < kPeers; i++) {
    RawPeer peer(address);
    std::string bytes(random.below(300), 0);
    random.fill(std::as_writable_bytes(std::span(bytes)));
    if (random.chance(2) && bytes.size() > 4) bytes.replace(0, 4, std::string("\x10\0\0\0", 4));
    peer.send_bytes(bytes);
  }
  EXPECT_TRUE(server.wait_for_closed(kPeers));
  EXPECT_EQ(server.late(), 0u);
}

}  // namespace
}  // namespace trainyard::net

#include "net/lazy_listeners.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "net/testing/test_socket.hpp"
#include "networks/network_namespace.hpp"
#include "networks/tcp_relay.hpp"

namespace trainyard::networks {
namespace {

using net::test::connect_to;

// Reads until the connection ends or is reset.
std::string read_to_end(const os::File& socket) {
  std::string bytes;
  char buffer[256];
  for (ssize_t got; (got = ::read(socket.descriptor(), buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, size_t(got));
  return bytes;
}

struct Listener {
  os::File file = *listen_in_namespace("", "127.0.0.1:0");
  uint16_t port = *listening_port(file);
};

// Sends a word to its first connection.
std::function<Result<void>(os::File)> sending(const std::string& word, std::atomic<int>& opened) {
  return [word, &opened](os::File listener) -> Result<void> {
    opened++;
    const os::File connection(::accept(listener.descriptor(), nullptr, nullptr));
    return ::write(connection.descriptor(), word.data(), word.size()) == ssize_t(word.size())
               ? ok()
               : Result<void>(from_errno("speaking"));
  };
}

TEST(LazyListeners, OpenOnTheFirstConnection) {
  Listener first, second;
  std::atomic<int> opened = 0;
  std::vector<net::LazyListener> listeners;
  listeners.push_back({std::move(first.file), sending("one", opened)});
  listeners.push_back({std::move(second.file), sending("two", opened)});
  const auto waiting = net::serve_lazily(std::move(listeners));
  ASSERT_TRUE(waiting) << waiting.error().message;
  EXPECT_EQ(opened, 0);
  EXPECT_EQ(read_to_end(connect_to(second.port)), "two");
  EXPECT_EQ(opened, 1) << "the other connection waits";
  EXPECT_EQ(read_to_end(connect_to(first.port)), "one");
}

TEST(LazyListeners, RefuseConnectionsIfOpenFails) {
  Listener listener;
  std::vector<net::LazyListener> listeners;
  listeners.push_back({std::move(listener.file),
                       [](os::File) -> Result<void> { return unavailable("not ready"); }});
  const auto waiting = net::serve_lazily(std::move(listeners));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(read_to_end(connect_to(listener.port)), "");
  EXPECT_FALSE(connect_to(listener.port));
}

TEST(LazyListeners, EndWithoutAConnection) {
  Listener listener;
  std::atomic<int> opened = 0;
  std::vector<net::LazyListener> listeners;
  listeners.push_back({std::move(listener.file), sending("one", opened)});
  {
    const auto waiting = net::serve_lazily(std::move(listeners));
    ASSERT_TRUE(waiting);
  }
  EXPECT_EQ(opened, 0);
  EXPECT_FALSE(connect_to(listener.port)) << "no listener";
}

}  // namespace
}  // namespace trainyard::networks

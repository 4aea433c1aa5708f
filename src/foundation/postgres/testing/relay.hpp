// Relay forwards the connections of a test to a PostgreSQL server, and cuts one of them at a chosen
// point: before or after a request reaches the server, or before its answer reaches the client.
//
//   Relay relay(server.socket());
//   relay.cut_at(3, Cut::answer);  // the third request is carried out, and its answer is lost
//
// A request is the data that the client sends at once. Only one connection is cut; later ones are
// forwarded.
//
// Threads: callable from anywhere; it has its own threads. Lifetime: the Relay outlives its
// connections.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::postgres {

enum class Cut {
  request,  // the server does not receive the request
  both,     // the server receives the request; the connection to it ends at once as well
  answer,   // the server receives the request and answers; the client does not receive the answer
  stall,    // as `answer`, but all connections stay open, and no more bytes are forwarded
};

class Relay {
 public:
  explicit Relay(std::string server_socket) : server_socket_(std::move(server_socket)) {
    listener_ = os::File(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(directory_.path() + "/.s.PGSQL.5432");
    EXPECT_EQ(
        ::bind(listener_.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        0);
    EXPECT_EQ(::listen(listener_.descriptor(), 64), 0);
    accepting_ = std::thread([this] { accept_all(); });
  }
  Relay(const Relay&) = delete;
  ~Relay() {
    stopped_ = true;
    accepting_.join();
    for (std::thread& each : passing_) each.join();
  }

  const std::string& socket_directory() const { return directory_.path(); }
  // Cuts the n-th request from now on, counted over all connections.
  void cut_at(uint64_t request, Cut cut) {
    const MutexLock lock(mutex_);
    left_ = request;
    cut_ = cut;
    has_cut_ = false;
  }
  bool has_cut() const { return has_cut_; }
  // Stops forwarding bytes, without ending a connection, as if the network were down; false
  // resumes.
  void stall(bool stalled) { stalled_ = stalled; }
  // Calls stall() once the server has answered that request.
  void stall_after(uint64_t request) { cut_at(request, Cut::stall); }

 private:
  static constexpr int kPollMilliseconds = 20;

  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), std::min(path.size(), sizeof address.sun_path - 1));
    return address;
  }

  void accept_all() {
    while (!stopped_) {
      pollfd ready{listener_.descriptor(), POLLIN, 0};
      if (stalled_ || ::poll(&ready, 1, kPollMilliseconds) <= 0) continue;
      os::File client(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
      os::File server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_un address = address_of(server_socket_);
      if (::connect(server.descriptor(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof address) != 0)
        continue;
      passing_.emplace_back([this, client = std::move(client), server = std::move(server)] {
        pass(client.descriptor(), server.descriptor());
      });
    }
  }

  // Counts a request. Returns true, and sets `cut`, if it is the one to cut.
  bool count_request(Cut& cut) {
    const MutexLock lock(mutex_);
    if (left_ == 0 || --left_ > 0) return false;
    cut = cut_;
    has_cut_ = true;
    return true;
  }

  void pass(int client, int server) {
    std::array<char, 1 << 16> buffer;
    while (!stopped_) {
      std::array<pollfd, 2> ready{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
      if (stalled_) {
        ::poll(nullptr, 0, kPollMilliseconds);
        continue;
      }
      if (::poll(ready.data(), ready.size(), kPollMilliseconds) <= 0) continue;
      if (ready[1].revents != 0) {
        const ssize_t bytes = ::read(server, buffer.data(), buffer.size());
        if (bytes <= 0 || !send_all(client, buffer.data(), size_t(bytes))) return;
      }
      if (ready[0].revents == 0) continue;
      const ssize_t bytes = ::read(client, buffer.data(), buffer.size());
      if (bytes <= 0) return;
      Cut cut{};
      const bool cuts = count_request(cut);
      if (cuts && cut == Cut::request) return;
      if (!send_all(server, buffer.data(), size_t(bytes))) return;
      if (cuts && cut == Cut::both) return;
      if (cuts) {
        // Waits for the first byte of the answer, so the server has carried out the request.
        pollfd answer{server, POLLIN, 0};
        ::poll(&answer, 1, 10'000);
        if (cut != Cut::stall) return;
        stalled_ = true;
      }
    }
  }

  static bool send_all(int to, const char* bytes, size_t left) {
    while (left > 0) {
      const ssize_t sent = ::send(to, bytes, left, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes += sent;
      left -= size_t(sent);
    }
    return true;
  }

  const std::string server_socket_;
  os::TemporaryDirectory directory_;
  os::File listener_;
  std::atomic<bool> stopped_ = false, has_cut_ = false, stalled_ = false;
  Mutex mutex_;
  uint64_t left_ GUARDED_BY(mutex_) = 0;
  Cut cut_ GUARDED_BY(mutex_) = Cut::request;
  std::vector<std::thread> passing_;  // used by the accepting thread until it has ended
  std::thread accepting_;
};

}  // namespace trainyard::postgres

#include "rabit/peer_socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace trainyard::rabit {

Result<void> PeerSocket::wait_for(short events, std::chrono::nanoseconds deadline,
                                  const Waits& waits) {
  for (;;) {
    if (waits.stop) return cancelled("the tracker was stopped");
    struct pollfd polled {
      file_.descriptor(), events, 0
    };
    const int ready = ::poll(&polled, 1, kStopCheckMilliseconds);
    if (ready < 0 && errno != EINTR) return from_errno("waiting for the connection");
    if (ready > 0) return ok();
    if (waits.clock.monotonic() > deadline)
      return unavailable("timed out after " + std::to_string(waits.message_timeout / 1s) + " s");
  }
}

Result<void> PeerSocket::send(std::string_view bytes, const Waits& waits) {
  const auto deadline = waits.clock.monotonic() + waits.message_timeout;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(file_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(size_t(sent));
    } else if (errno == EAGAIN) {
      TRY(wait_for(POLLOUT, deadline, waits));
    } else if (errno != EINTR) {
      return unavailable(std::string("closed its connection: ") + std::strerror(errno));
    }
  }
  return ok();
}

Result<int32_t> PeerSocket::receive_integer(const Waits& waits) {
  const auto deadline = waits.clock.monotonic() + waits.message_timeout;
  while (early_.size() < sizeof(int32_t)) {
    char bytes[sizeof(int32_t)];
    const ssize_t got = ::recv(file_.descriptor(), bytes, sizeof(int32_t) - early_.size(), 0);
    if (got > 0) {
      early_.append(bytes, size_t(got));
    } else if (got == 0) {
      return unavailable("closed its connection while an integer was read");
    } else if (errno == EAGAIN) {
      TRY(wait_for(POLLIN, deadline, waits));
    } else if (errno != EINTR) {
      return unavailable(std::string("lost its connection: ") + std::strerror(errno));
    }
  }
  int32_t value = 0;
  std::memcpy(&value, early_.data(), sizeof value);
  early_.erase(0, sizeof value);
  return value;
}

}  // namespace trainyard::rabit

// A PeerSocket sends and receives whole integers and texts over a non-blocking connection, each
// within a timeout.
//
// Threads: confined to one. Errors: unavailable, if the peer closes the connection or the timeout
// expires; cancelled, if `stop` is set.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace trainyard::rabit {

// The interval in which waits check `stop`.
inline constexpr int kStopCheckMilliseconds = 100;

struct Waits {
  Clock& clock;
  const std::atomic<bool>& stop;
  Duration message_timeout;
};

class PeerSocket {
 public:
  // `early` are bytes that were already received.
  PeerSocket(os::File file, std::string early) : file_(std::move(file)), early_(std::move(early)) {}
  Result<void> send(std::string_view bytes, const Waits& waits);
  Result<int32_t> receive_integer(const Waits& waits);

 private:
  Result<void> wait_for(short events, std::chrono::nanoseconds deadline, const Waits& waits);

  os::File file_;
  std::string early_;
};

}  // namespace trainyard::rabit

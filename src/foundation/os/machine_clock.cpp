#include "os/machine_clock.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/check.hpp"

namespace trainyard::os {

Instant MachineClock::now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

std::chrono::nanoseconds MachineClock::monotonic() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void MachineRandom::fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    CHECK(got > 0, "getrandom() never fails");
    bytes = bytes.subspan(size_t(got));
  }
}

}  // namespace trainyard::os

#include "os/name_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "os/files.hpp"

namespace trainyard::os {

Result<bool> await_name(const std::string& directory, const std::string& name, Duration at_most) {
  const std::string path = directory + "/" + name;
  if (exists(path)) return true;
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const File watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch) return from_errno("watching " + directory);
  if (::inotify_add_watch(watch.descriptor(), directory.c_str(),
                          IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0)
    return from_errno("watching " + directory);
  // A name that was created before the watch is found by this check; a later one wakes the watch.
  while (!exists(path)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
            .count();
    if (left <= 0) return exists(path);
    pollfd ready{watch.descriptor(), POLLIN, 0};
    (void)::poll(&ready, 1, int(std::clamp<int64_t>(left, 0, INT_MAX)));
    alignas(inotify_event) char events[4096];
    while (::read(watch.descriptor(), events, sizeof events) > 0) {
    }
  }
  return true;
}

}  // namespace trainyard::os

// Serves listening sockets on demand: the server of one (threads, event loops) is made for its
// first connection. Most short jobs connect to none.
//
// Threads: one of its own, which calls `open` and ends when all sockets have been opened. Lifetime:
// destruction ends the waiting; after it no `open` runs. Errors: those of making a thread. A
// listener whose `open` fails is closed: the log has the error, and later connections are refused.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::net {

struct LazyListener {
  os::File listener;
  // Takes over the socket, whose first connection waits for accept(). Called once.
  std::function<Result<void>(os::File listener)> open;
};

class LazyListeners {
 public:
  virtual ~LazyListeners() = default;
};

Result<std::unique_ptr<LazyListeners>> serve_lazily(std::vector<LazyListener> listeners);

}  // namespace trainyard::net

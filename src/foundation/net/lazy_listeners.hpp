// Serves listening sockets on demand: the server of a socket (threads, event loops) is made when
// its first connection arrives. Most short jobs connect to none of them.
//
// Threads: it has one thread, which calls `open` and ends when all sockets have been opened.
// Lifetime: the destructor ends the thread; after it no `open` runs. Errors: those of making a
// thread. If `open` fails, the error is logged and the listener is closed, so later connections are
// refused.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::net {

struct LazyListener {
  os::File listener;
  // Serves the socket, whose first connection waits for accept(). Called once.
  std::function<Result<void>(os::File listener)> open;
};

class LazyListeners {
 public:
  virtual ~LazyListeners() = default;
};

Result<std::unique_ptr<LazyListeners>> serve_lazily(std::vector<LazyListener> listeners);

}  // namespace trainyard::net

// Sockets that listen, behind which nobody stands until somebody comes: what serves one (threads, event loops) is made
// for its first visitor. Most short jobs visit none.
//
// Threads: one of its own, which calls `open`, and which ends when all have been opened. Lifetime: destruction ends the
// waiting; after it no `open` runs. Errors: those of making a thread. A door whose `open` fails is shut: it says so in
// the log, and visitors are refused from then on.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::net {

struct LazyListener {
  os::File listener;
  // Takes the socket over, whose first visitor waits to be accepted. Called once.
  std::function<Result<void>(os::File listener)> open;
};

class LazyListeners {
 public:
  virtual ~LazyListeners() = default;
};

Result<std::unique_ptr<LazyListeners>> serve_lazily(std::vector<LazyListener> doors);

}  // namespace trainyard::net

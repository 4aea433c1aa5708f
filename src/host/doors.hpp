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
#include "host/files.hpp"

namespace trainyard::host {

struct Door {
  File listener;
  // Takes the socket over, whose first visitor waits to be accepted. Called once.
  std::function<Result<void>(File listener)> open;
};

class Doors {
 public:
  virtual ~Doors() = default;
};

Result<std::unique_ptr<Doors>> wait_at(std::vector<Door> doors);

}  // namespace trainyard::host

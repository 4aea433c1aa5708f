// How an agent that has done with its job is handed the next one's order, by files in its directory:
//
//   idle         the agent offers itself: made before it says its last fact. Holds the latest version that it speaks
//                (wire/messages.hpp); of release 0.1.0 it is empty, and such an agent is handed nothing
//   next.json    the launcher's order; then it renames `idle` to `taken`
//   taken        the agent has been taken, and must take the order
//
// Whoever takes `idle` away has decided: the launcher by its rename, or the agent by removing it, and then it leaves. So
// an order is handed over to an agent that takes it, or not at all, whoever dies in between.
//
// Threads: callable from any, one at a time. Errors: those of files.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::agent {

class NextOrder {
 public:
  explicit NextOrder(std::string directory) : directory_(std::move(directory)) {}

  void offer() const;
  // Waits for an order; nothing: none came, and we are not offered any more. Also when we were not offered.
  Result<std::optional<std::string>> take(Duration at_most) const;
  // Not offered any more; harmless when it was not.
  void withdraw() const;

 private:
  std::string path(const char* name) const { return directory_ + "/" + name; }
  const std::string directory_;
};

}  // namespace trainyard::agent

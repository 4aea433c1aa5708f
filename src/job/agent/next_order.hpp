// Passes the next job's order to an agent that has finished its job (host reuse), by files in its
// directory:
//
//   idle         the agent offers itself: made before it sends its last fact. Holds the latest
//                version that it supports (wire/messages.hpp); release 0.1.0 leaves it empty, and
//                such an agent gets no further order
//   next.json    the launcher's order; then it renames `idle` to `taken`
//   taken        the agent has been taken, and must take the order
//
// The process that removes `idle` has decided: the launcher by its rename, or the agent by removing
// it before it ends. So an order reaches an agent that takes it, or none, even if one of them dies
// in between.
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
  // Waits for an order; nothing: none came, or there was no offer, and the offer has ended.
  Result<std::optional<std::string>> take(Duration at_most) const;
  // Ends the offer; harmless without one.
  void cancel() const;

 private:
  std::string path(const char* name) const { return directory_ + "/" + name; }
  const std::string directory_;
};

}  // namespace trainyard::agent

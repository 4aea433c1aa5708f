// Passes the next job's order to an agent that has finished its job (host reuse), through files in
// the agent's directory:
//
//   idle         the agent offers itself. Made before its last fact is sent. Contains the latest
//                version that the agent supports (wire/messages.hpp). Release 0.1.0 leaves it
//                empty, and such an agent gets no further order
//   next.json    the order, written by the launcher, which then renames `idle` to `taken`
//   taken        the launcher has accepted the offer: the agent must read the order
//
// The process that removes `idle` has decided: the launcher by its rename, or the agent by removing
// it before it ends. So no order is lost, and none is given to an agent that ends, even if the
// launcher or the agent is killed in between.
//
// Threads: callable from any thread, one call at a time. Errors: those of files.
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
  // Waits for an order. nullopt: no order came in time, or nothing was offered; the offer has then
  // ended.
  Result<std::optional<std::string>> take(Duration at_most) const;
  // Ends the offer; no effect without one.
  void cancel() const;

 private:
  std::string path(const char* name) const { return directory_ + "/" + name; }
  const std::string directory_;
};

}  // namespace trainyard::agent

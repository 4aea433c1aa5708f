// Resizing adds and releases machines as decided. It logs a failure once, and again after a
// success.
//
// Threads: confined to the reconciling thread. Lifetime: the launcher outlives it. Private to this
// module.
#pragma once

#include <set>
#include <string>

#include "launch/launcher.hpp"
#include "reconcile/reconcile.hpp"

namespace trainyard::control {

class Resizing {
 public:
  explicit Resizing(launch::Launcher& launcher) : launcher_(launcher) {}
  // Returns false if a step failed; the next iteration decides it again.
  bool carry_out(const reconcile::Decision& decision);

 private:
  // Logs a new failure; returns true if `done` succeeded.
  bool report(const char* what, const std::string& which, const Result<void>& done);

  launch::Launcher& launcher_;
  std::set<std::string> failed_;  // kinds and machines whose failure was logged
};

}  // namespace trainyard::control

// Resizing adds and releases machines, as decided. It logs a failure once, until it has passed.
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
  // False: something failed, and will be decided again.
  bool carry_out(const reconcile::Decision& decision);

 private:
  bool said(const char* what, const std::string& which, const Result<void>& done);

  launch::Launcher& launcher_;
  std::set<std::string> failed_;  // kinds and machines whose failure was logged
};

}  // namespace trainyard::control

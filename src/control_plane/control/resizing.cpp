#include "control/resizing.hpp"

#include "base/log.hpp"

namespace trainyard::control {

bool Resizing::report(const char* what, const std::string& which, const Result<void>& done) {
  if (done)
    failed_.erase(which);
  else if (failed_.insert(which).second)
    log(Level::warning, "control", what, {{"which", which}, {"why", done.error().message}});
  return bool(done);
}

bool Resizing::carry_out(const reconcile::Decision& decision) {
  bool all = true;
  for (const auto& [kind, machines] : decision.grow)
    all &= report("machines are not available", kind, launcher_.grow(kind, machines));
  for (const std::string& machine : decision.shrink)
    all &= report("a machine could not be released", machine, launcher_.shrink(machine));
  return all;
}

}  // namespace trainyard::control

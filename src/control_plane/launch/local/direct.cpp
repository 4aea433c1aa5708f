#include "launch/local/direct.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::launch {

bool DirectGate::enter(const networks::Egress& egress) {
  const MutexLock lock(mutex_);
  // In a rootless sandbox each network's rules have the machine's addresses, which change.
  if (impossible_ || system_.in_rootless_sandbox()) return false;
  const bool changed = !made_ || firewall_.egress != egress;
  // Checked each time, since a flush of all rules of the machine also removes this table.
  if (changed || !system_.has_firewall_table(firewall_.table)) {
    firewall_.egress = egress;
    if (const auto made = system_.make_firewall(firewall_); !made) {
      impossible_ = true;
      log(Level::warning, "launch", "gangs of one host get bridges: " + made.error().message);
      return false;
    }
    made_ = true;
  }
  networks_++;
  return true;
}

void DirectGate::found(size_t networks) {
  const MutexLock lock(mutex_);
  networks_ += networks;
}

Result<void> DirectGate::leave(size_t networks) {
  const MutexLock lock(mutex_);
  CHECK(networks <= networks_, "leave() without enter()");
  const auto removed =
      networks == networks_ ? system_.remove_firewall_tables({firewall_.table}) : ok();
  networks_ -= networks;
  return removed;
}

}  // namespace trainyard::launch

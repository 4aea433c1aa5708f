#include "launch/local/direct.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "host/enclosure.hpp"

namespace trainyard::launch {

bool DirectGate::enter(const host::Egress& egress) {
  const std::lock_guard lock(mutex_);
  // In an enclosure each network's rules name the machine's own addresses, which change.
  if (impossible_ || host::in_enclosure()) return false;
  const bool changed = !made_ || firewall_.egress != egress;
  // Asked each time: a flush of the machine's rules takes ours with them.
  if (changed || !host::has_firewall_table(firewall_.table)) {
    firewall_.egress = egress;
    if (const auto made = host::make_firewall(firewall_); !made) {
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
  const std::lock_guard lock(mutex_);
  networks_ += networks;
}

Result<void> DirectGate::leave(size_t networks) {
  const std::lock_guard lock(mutex_);
  CHECK(networks <= networks_, "who leaves has entered");
  networks_ -= networks;
  return networks_ > 0 ? ok() : host::remove_firewall_tables({firewall_.table});
}

}  // namespace trainyard::launch

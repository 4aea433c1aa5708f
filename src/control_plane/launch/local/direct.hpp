// Manages the firewall of gangs without a bridge: it exists while any of them does.
//
// Threads: callable from anywhere. Errors: a firewall that cannot be made is logged once, and gangs
// then get bridges.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "launch/local/local_system.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {

class DirectGate {
 public:
  DirectGate(LocalSystem& system, networks::DirectFirewall firewall)
      : system_(system), firewall_(std::move(firewall)) {}

  // Counts one more network, and makes the firewall with those rules if needed. False: it cannot be
  // made; nothing is counted.
  bool enter(const networks::Egress& egress);
  // Counts networks of an earlier server.
  void found(size_t networks);
  // Counts removed networks; removes the firewall with the last.
  Result<void> leave(size_t networks);
  const networks::DirectFirewall& firewall() const { return firewall_; }

 private:
  LocalSystem& system_;
  networks::DirectFirewall firewall_;
  Mutex mutex_;
  size_t networks_ GUARDED_BY(mutex_) = 0;
  bool impossible_ GUARDED_BY(mutex_) = false;
  bool made_ GUARDED_BY(mutex_) = false;  // by us, with the current rules
};

}  // namespace trainyard::launch

// DirectGate manages the firewall table that all gangs without a bridge share. The table exists
// while any such gang does.
//
// Threads: callable from anywhere. Errors: if the table cannot be created, this is logged once, and
// gangs get bridges.
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

  // Counts one more network, and creates the table with those rules if needed. Returns false, and
  // counts nothing, if it cannot be created.
  bool enter(const networks::Egress& egress);
  // Counts networks of an earlier server.
  void found(size_t networks);
  // Counts removed networks; removes the table with the last.
  Result<void> leave(size_t networks);
  const networks::DirectFirewall& firewall() const { return firewall_; }

 private:
  LocalSystem& system_;
  networks::DirectFirewall firewall_;
  Mutex mutex_;
  size_t networks_ GUARDED_BY(mutex_) = 0;
  bool impossible_ GUARDED_BY(mutex_) = false;
  bool made_ GUARDED_BY(mutex_) = false;  // this server created it, with the current rules
};

}  // namespace trainyard::launch

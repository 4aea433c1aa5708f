// The firewall of gangs without a bridge: there while any of them is.
//
// Threads: callable from anywhere. Errors: what cannot be made is told once in the log, and gangs then get bridges.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/result.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {

class DirectGate {
 public:
  explicit DirectGate(networks::DirectFirewall firewall) : firewall_(std::move(firewall)) {}

  // One more network is about to be made, and the firewall is there, with those rules. False: it cannot be; nothing is
  // counted.
  bool enter(const networks::Egress& egress);
  // So many are there already, of a former server.
  void found(size_t networks);
  // So many are gone; the firewall goes with the last.
  Result<void> leave(size_t networks);
  const networks::DirectFirewall& firewall() const { return firewall_; }

 private:
  networks::DirectFirewall firewall_;
  std::mutex mutex_;
  size_t networks_ = 0;      // guarded by mutex_
  bool impossible_ = false;  // guarded by mutex_
  bool made_ = false;        // by us, with the present rules; guarded by mutex_
};

}  // namespace trainyard::launch

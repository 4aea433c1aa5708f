// A word that a running step hears at its next breath: end early.
//
// Threads: order() from anywhere; steps ask between two pieces of their work.
#pragma once

#include <atomic>

#include "base/result.hpp"

namespace trainyard::agent {

class Interruption {
 public:
  void order() { ordered_ = true; }
  void clear() { ordered_ = false; }
  bool ordered() const { return ordered_; }
  // Errors: cancelled, once it was ordered.
  Result<void> check() const {
    if (ordered_) return cancelled("interrupted");
    return {};
  }

 private:
  std::atomic<bool> ordered_ = false;
};

}  // namespace trainyard::agent

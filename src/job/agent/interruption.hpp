// Interrupts a running step: the step checks it between parts of its work and ends early.
//
// Threads: order() from anywhere; steps call check() between two parts of their work.
#pragma once

#include <atomic>

#include "base/result.hpp"

namespace trainyard::agent {

class Interruption {
 public:
  void order() { ordered_ = true; }
  void clear() { ordered_ = false; }
  bool ordered() const { return ordered_; }
  // Errors: cancelled, after order().
  Result<void> check() const {
    if (ordered_) return cancelled("interrupted");
    return {};
  }

 private:
  std::atomic<bool> ordered_ = false;
};

}  // namespace trainyard::agent

// Holds the latest temporary keys that the server sent for the job.
//
// Threads: callable from anywhere.
#pragma once

#include <optional>

#include "agent/interruption.hpp"
#include "base/thread_safety.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

class JobKeys {
 public:
  void set(wire::Credentials credentials);
  std::optional<wire::Credentials> get() const;
  // Waits until there are keys that have not expired. Blocks forever: the server may be unavailable
  // for hours.
  // Errors: cancelled.
  Result<wire::Credentials> wait(Clock& clock, const Interruption& interruption) const;
  // Returns whether keys with another token arrived within the duration.
  bool wait_for_others(const std::string& session_token, Duration at_most) const;

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  std::optional<wire::Credentials> credentials_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::agent

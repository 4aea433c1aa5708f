// The job's temporary keys, as the server last gave them.
//
// Threads: callable from anywhere.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "agent/interruption.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

class JobKeys {
 public:
  void set(wire::Credentials credentials);
  std::optional<wire::Credentials> get() const;
  // Waits until there are keys that have not expired. Blocks for ever: the
  // server may be away for hours. Errors: cancelled.
  Result<wire::Credentials> wait(Clock& clock, const Interruption& interruption) const;
  // Whether other keys than those with this token came within the duration.
  bool wait_for_others(const std::string& session_token, Duration at_most) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<wire::Credentials> credentials_;  // guarded by mutex_
};

}  // namespace trainyard::agent

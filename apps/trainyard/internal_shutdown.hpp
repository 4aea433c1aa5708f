// InternalShutdown shuts the process down for an internal reason: it stores the first reason and
// sends SIGTERM to the process, which ends as after a signal of a user.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/thread_safety.hpp"

namespace trainyard::apps {

class InternalShutdown {
 public:
  void because(const std::string& why) {
    const MutexLock lock(mutex_);
    if (why_) return;
    why_ = why;
    ::kill(::getpid(), SIGTERM);
  }
  std::optional<std::string> why() const {
    const MutexLock lock(mutex_);
    return why_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<std::string> why_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::apps

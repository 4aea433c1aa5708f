// Defines the state that handles of requests share with the negotiator that completes them. Private
// to the module.
//
// Threads: call from any thread. Errors: none.
// Lifetime: shared; handles may outlive the negotiator.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace trainyard::gradients {

// A Notifier wakes the background thread. It is shared with the handles, which may outlive the
// negotiator.
struct Notifier {
  Mutex mutex;
  ConditionVariable changed;
  int waiting GUARDED_BY(mutex) = 0;     // threads in Handle::wait
  bool hurry GUARDED_BY(mutex) = false;  // a thread began to wait since the last cycle
};

struct Handle::State {
  explicit State(std::shared_ptr<Notifier> notifier) : notifier(std::move(notifier)) {}
  const std::shared_ptr<Notifier> notifier;  // shared with the negotiator; the last one frees it
  mutable Mutex mutex;
  ConditionVariable finished;
  std::optional<Result<Outcome>> result GUARDED_BY(mutex);
  bool refused = false;  // written before submit() returns

  void finish(Result<Outcome> outcome) {
    {
      const MutexLock lock(mutex);
      result = std::move(outcome);
    }
    finished.notify_all();
  }
};

}  // namespace trainyard::gradients

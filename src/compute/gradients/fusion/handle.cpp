#include "gradients/fusion/handle_state.hpp"

namespace trainyard::gradients {

bool Handle::done() const {
  const MutexLock lock(state_->mutex);
  return state_->result.has_value();
}

bool Handle::refused() const { return state_->refused; }

Result<Outcome> Handle::wait() {
  if (!done()) {
    {
      const MutexLock lock(state_->notifier->mutex);
      ++state_->notifier->waiting;
      state_->notifier->hurry = true;
    }
    state_->notifier->changed.notify_all();
    {
      MutexLock lock(state_->mutex);
      state_->finished.wait(lock,
                            [&]() REQUIRES(state_->mutex) { return state_->result.has_value(); });
    }
    const MutexLock lock(state_->notifier->mutex);
    --state_->notifier->waiting;
  }
  const MutexLock lock(state_->mutex);
  return *state_->result;
}

}  // namespace trainyard::gradients

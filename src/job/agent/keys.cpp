#include "agent/keys.hpp"

#include "base/thread_safety.hpp"

namespace trainyard::agent {
namespace {
// The interval at which a wait checks whether it was interrupted or the keys have expired.
constexpr Duration kLookUpInterval = 50ms;
}  // namespace

void JobKeys::set(wire::Credentials credentials) {
  {
    const MutexLock lock(mutex_);
    credentials_ = std::move(credentials);
  }
  changed_.notify_all();
}

std::optional<wire::Credentials> JobKeys::get() const {
  const MutexLock lock(mutex_);
  return credentials_;
}

Result<wire::Credentials> JobKeys::wait(Clock& clock, const Interruption& interruption) const {
  MutexLock lock(mutex_);
  for (;;) {
    TRY(interruption.check());
    if (credentials_ && credentials_->expires > clock.now()) return *credentials_;
    changed_.wait_for(lock, kLookUpInterval);
  }
}

bool JobKeys::wait_for_others(const std::string& session_token, Duration at_most) const {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) {
    return credentials_ && credentials_->session_token != session_token;
  });
}

}  // namespace trainyard::agent

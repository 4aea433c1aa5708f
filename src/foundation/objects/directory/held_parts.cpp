#include "objects/directory/held_parts.hpp"

#include "base/thread_safety.hpp"

namespace trainyard::objects {

HeldParts::Hold HeldParts::hold(const std::string& path) {
  {
    const MutexLock lock(mutex_);
    ++entries_[path].holders;
  }
  return {nullptr, [this, path](void*) { release(path); }};
}

void HeldParts::drop(const std::string& path) {
  {
    const MutexLock lock(mutex_);
    const auto held = entries_.find(path);
    if (held != entries_.end()) {
      held->second.dropped = true;
      return;
    }
  }
  discard_(path);
}

void HeldParts::release(const std::string& path) {
  {
    const MutexLock lock(mutex_);
    const auto held = entries_.find(path);
    if (--held->second.holders > 0) return;
    const bool dropped = held->second.dropped;
    entries_.erase(held);
    if (!dropped) return;
  }
  discard_(path);
}

}  // namespace trainyard::objects

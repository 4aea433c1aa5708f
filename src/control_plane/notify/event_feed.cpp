#include "notify/event_feed.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::notify {

void EventFeed::add(const std::string& region, std::shared_ptr<const Json> event, size_t bytes) {
  const MutexLock lock(mutex_);
  ring_.push_back({region, std::move(event), bytes});
  bytes_ += bytes;
  ++next_;
  while (ring_.size() > kEventsMax || (bytes_ > kBytesMax && ring_.size() > 1)) {
    bytes_ -= ring_.front().bytes;
    ring_.pop_front();
  }
}

uint64_t EventFeed::position() const {
  const MutexLock lock(mutex_);
  return next_;
}

EventFeed::Events EventFeed::since(uint64_t position, const std::string& region,
                                   size_t events_max) const {
  Events out;
  const MutexLock lock(mutex_);
  if (position > next_) position = next_;  // an earlier process returned it
  const uint64_t oldest = next_ - ring_.size();
  out.missed = position < oldest;
  uint64_t at = std::max(position, oldest);
  for (; at < next_ && out.events.size() < events_max; ++at) {
    const Entry& each = ring_[size_t(at - oldest)];
    if (each.region == region) out.events.push_back(each.event);
  }
  out.position = at;
  return out;
}

}  // namespace trainyard::notify

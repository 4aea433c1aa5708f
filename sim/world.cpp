#include "sim/world.hpp"

#include <cstdio>

namespace trainyard::sim {

World::World(uint64_t seed, bool tracing) : random(seed), tracing_(tracing) {}

void World::after(Duration delay, Action action) {
  events_.push({elapsed_ + delay, ++made_, std::move(action)});
}

bool World::step() {
  if (events_.empty()) return false;
  // The action may add events.
  Event event = std::move(const_cast<Event&>(events_.top()));
  events_.pop();
  elapsed_ = event.at;
  ++steps_;
  event.action();
  return true;
}

Duration World::between(Duration least, Duration most) {
  return least + Duration{int64_t(random.below(uint64_t((most - least).count()) + 1))};
}

void World::may_crash(const char* where, uint64_t one_in) {
  if (fault(one_in)) throw ServerCrash{where};
}

void World::trace(const std::string& who, const std::string& what) const {
  if (!tracing_) return;
  std::printf("%9.3f  %-12s %s\n", double(elapsed_.count()) / 1000, who.c_str(), what.c_str());
}

}  // namespace trainyard::sim

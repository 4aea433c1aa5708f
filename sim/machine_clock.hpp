// MachineClock simulates the clocks of one machine. Both show the true time until the wall clock is
// set or the machine is suspended.
//
// Threads: one. Lifetime: the world outlives it.
#pragma once

#include "sim/world.hpp"

namespace trainyard::sim {

// The clocks that keep running while a machine is suspended.
enum class Suspension { both_continue, wall_continues, both_stop };

class MachineClock final : public Clock {
 public:
  explicit MachineClock(World& world) : world_(world) {}

  Instant now() override { return world_.now() + set_; }
  std::chrono::nanoseconds monotonic() override { return world_.elapsed() - stood_; }

  // Sets the wall clock forward or back.
  void set(Duration by) { set_ += by; }
  // Resumes the machine after a suspension of this length.
  void resume(Suspension kind, Duration suspended) {
    if (kind != Suspension::both_continue) stood_ += suspended;
    if (kind == Suspension::both_stop) set_ -= suspended;
  }

 private:
  World& world_;
  Duration set_{}, stood_{};
};

// Draws a jump of a clock: mostly up to two hours back or forward, sometimes a day, as after a
// wrong time zone or date.
inline Duration some_jump(World& world) {
  const Duration by = world.random.chance(5) ? world.between(23h, 25h) : world.between(1s, 2h);
  return world.random.chance(2) ? by : -by;
}

}  // namespace trainyard::sim

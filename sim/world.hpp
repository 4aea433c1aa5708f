// World is the environment of a simulation: one queue of events in simulated time, one source of
// random numbers, faults until the world is calm, and a trace for readers.
//
// Threads: one.
#pragma once

#include <functional>
#include <memory_resource>
#include <queue>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"

namespace trainyard::sim {

// Thrown when an invariant is violated. Ends the simulation of the seed.
struct CheckFailed {
  std::string what;
};

// Thrown to end the process of the server at this point.
struct ServerCrash {
  std::string where;
};

class World final : public Clock {
 public:
  using Action = std::function<void()>;

  World(uint64_t seed, bool tracing);

  SeededRandom random;
  // Objects in this resource have ascending addresses. So maps by address, such as the gateway's
  // map of links, have the same order in each run of a seed.
  std::pmr::monotonic_buffer_resource in_order{1 << 20};
  bool calm = false;  // true: no further faults

  // -- time: the true time; machines have their own clocks (machine_clock.hpp)
  Instant now() override { return from_milliseconds(kStart) + elapsed_; }
  std::chrono::nanoseconds monotonic() override { return elapsed_; }
  Duration elapsed() const { return elapsed_; }

  // -- events, ordered by time, then by the order of their creation
  void after(Duration delay, Action action);
  // Runs the next event. Returns false when the queue is empty.
  bool step();
  uint64_t steps() const { return steps_; }

  // -- chance
  Duration between(Duration least, Duration most);
  // Returns true once in `one_in` calls on average; never when calm.
  bool fault(uint64_t one_in) { return !calm && random.chance(one_in); }
  // May end the process of the server here.
  void may_crash(const char* where, uint64_t one_in = kCrashOneIn);
  uint64_t crash_chances = 0;

  // -- text
  bool tracing() const { return tracing_; }
  void trace(const std::string& who, const std::string& what) const;
  [[noreturn]] static void fail(std::string what) { throw CheckFailed{std::move(what)}; }
  static void check(bool holds, const std::string& what) {
    if (!holds) fail(what);
  }

 private:
  static constexpr int64_t kStart = 1'763'631'900'000;
  // The inverse frequency of crashes: often enough that most seeds have several crashes, rarely
  // enough that jobs make progress.
  static constexpr uint64_t kCrashOneIn = 100;

  struct Event {
    Duration at;
    uint64_t order;
    Action action;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  std::priority_queue<Event> events_;
  Duration elapsed_{};
  uint64_t made_ = 0;
  uint64_t steps_ = 0;
  bool tracing_;
};

}  // namespace trainyard::sim

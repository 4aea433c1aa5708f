// A Tracker gives the workers of one distributed training their ranks, and tells each whom to
// connect to, in rabit's protocol as XGBoost 1.7 speaks it.
//
//   auto tracker = TRY(Tracker::start({.endpoint = {"algo-1", 9099}, .workers = 2}, clock));
//   ...                                  // workers connect, train, and say that they shut down
//   TRY(tracker->wait());
//
// Ranks follow the order of the task ids (DMLC_TASK_ID): shorter ones first, then by their bytes.
// Workers without one come last. All workers must have started before any has a rank.
//
// Peers are untrusted: a connection whose first message is invalid or late is closed, and the
// training continues. A started worker that fails before it is connected, or that starts to recover
// lost connections, ends the training with its task id in the error.
//
// Threads: it has one of its own; call from anywhere. The destructor stops it.
// Errors: unavailable, naming a worker or those that started; cancelled after stop().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"

namespace trainyard::rabit {

struct TrackerOptions {
  collectives::Endpoint endpoint;  // on which it listens; port 0: one that the kernel chooses
  int workers = 1;
  Duration join_deadline = 10min;  // for the last worker to start
  // The longest wait for the next number of a worker that is being connected, which may have to
  // connect to others first; the library tries for 10 s.
  Duration message_timeout = 1min;
  std::function<void(std::string_view line)> print = {};  // for the workers' command print
};

class Tracker {
 public:
  // The clock outlives it. Errors: invalid options; unavailable: it cannot listen.
  static Result<std::unique_ptr<Tracker>> start(TrackerOptions options, Clock& clock);
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  uint16_t port() const;
  // Returns when all workers have shut down, or the training has failed.
  Result<void> wait();
  // Ends wait() with `cancelled`, and closes all connections.
  void stop();

 private:
  class Impl;
  explicit Tracker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::rabit

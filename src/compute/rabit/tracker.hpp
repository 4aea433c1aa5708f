// A Tracker assigns ranks to the workers of one distributed training, and sends each worker the
// peers to which it connects. It implements rabit's protocol, as of XGBoost 1.7.
//
//   auto tracker = TRY(Tracker::start({.endpoint = {"algo-1", 9099}, .workers = 2}, clock));
//   ...                                  // workers connect, train, and say that they shut down
//   TRY(tracker->wait());
//
// Ranks follow the order of the task ids (DMLC_TASK_ID): shorter ones first, then by their bytes.
// Workers without one come last. Ranks are assigned when all workers have started.
//
// Peers are untrusted: if the first message of a connection is invalid or late, the connection is
// closed, and the training continues. If a started worker fails before it is connected, or begins
// to recover lost connections, the training ends with the worker's task id in the error.
//
// Threads: call from any thread; the tracker has a thread of its own, which the destructor stops.
// Errors: unavailable, naming the worker at fault or the workers that started; cancelled after
// stop().
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
  collectives::Endpoint endpoint;  // where it listens; port 0: the kernel chooses one
  int workers = 1;
  Duration join_deadline = 10min;  // for the last worker to start
  // The longest wait for the next number from a worker that is being connected. The worker may have
  // to connect to others first, for which the library tries 10 s.
  Duration message_timeout = 1min;
  std::function<void(std::string_view line)> print = {};  // called for a worker's command `print`
};

class Tracker {
 public:
  // Starts listening. The clock outlives the tracker. Errors: invalid options; unavailable, if it
  // cannot listen.
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

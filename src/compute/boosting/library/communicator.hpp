// A Communicator connects this thread's calls of XGBoost's library to those of other hosts, as a
// worker of a tracker (rabit/tracker.hpp).
//
// Threads: confined to the thread that made it: only this thread's calls of the library
// communicate. Errors: unavailable, with the library's message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace trainyard::boosting {

struct WorkerOptions {
  std::string tracker_host;
  uint16_t tracker_port = 0;
  std::string task_id;  // the tracker orders the ranks by it
};

class Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> join(const WorkerOptions& options);
  // Reports the shutdown to the tracker, and closes the connections to other workers.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int size() const;

 private:
  Communicator() = default;
};

}  // namespace trainyard::boosting

// Creates many streams of a log with one sync: an iteration that starts sixty hosts waits once, not sixty times.
//
// Threads: callable from anywhere. Errors: those of Logs.
#pragma once

#include <vector>

#include "observe/logs.hpp"

namespace trainyard::observe {

class ManyStreams {
 public:
  virtual ~ManyStreams() = default;
  // Makes the groups and streams that are not there: all of them, or none.
  virtual Result<void> ensure_streams(const std::vector<StreamKey>& keys) = 0;
};

}  // namespace trainyard::observe

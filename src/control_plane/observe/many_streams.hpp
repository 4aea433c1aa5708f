// ManyStreams creates many log streams with one sync: an iteration that starts sixty hosts waits once, not sixty times.
//
// Threads: callable from anywhere. Errors: those of Logs.
#pragma once

#include <vector>

#include "observe/logs.hpp"

namespace trainyard::observe {

class ManyStreams {
 public:
  virtual ~ManyStreams() = default;
  // Creates all missing groups and streams, or none on error.
  virtual Result<void> ensure_streams(const std::vector<StreamKey>& keys) = 0;
};

}  // namespace trainyard::observe

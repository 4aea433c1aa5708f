// Logs that can make many streams with one sync: a turn in which sixty hosts start does not wait sixty times.
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

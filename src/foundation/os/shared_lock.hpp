// SharedLock is a file lock that several processes can hold at once. It conflicts with an exclusive
// lock (FileLock) of the same path.
//
// Threads: confined to one. Errors: conflict (a process holds the exclusive lock), denied,
// exhausted. Lifetime: the lock is released when the last copy of its descriptor is closed.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::os {

class SharedLock {
 public:
  static Result<SharedLock> take(const std::string& path);

 private:
  explicit SharedLock(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace trainyard::os

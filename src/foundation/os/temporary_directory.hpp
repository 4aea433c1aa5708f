// A directory that is removed with all that is in it. For tests, and for what lives no longer than its maker.
//
// Threads: confined to one. Errors: it is our own fault when the system's temporary folder cannot be written.
#pragma once

#include <string>

namespace trainyard::os {

class TemporaryDirectory {
 public:
  TemporaryDirectory();  // below $TMPDIR, or /tmp; mode 0700
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace trainyard::os

// Makes a directory that is removed with its content. For tests, and for files that live no longer
// than their maker.
//
// Threads: confined to one. Errors: the system's temporary folder must be writable, or the program
// ends.
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

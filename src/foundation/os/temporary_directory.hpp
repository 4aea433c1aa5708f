// TemporaryDirectory makes a directory, and removes it with its content in its destructor. It is
// for tests, and for files that are needed only during the lifetime of an object.
//
// Threads: confined to one. Errors: the program aborts if the parent directory is not writable; a
// directory that cannot be removed is logged.
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

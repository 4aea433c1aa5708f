// TemporaryDirectory makes a directory, and removes it with its content in its destructor. Used by
// tests, and for files that are not needed after the object that made them.
//
// Threads: confined to one. Errors: the program ends if the system's temporary directory is not
// writable.
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

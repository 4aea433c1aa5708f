#include "os/temporary_directory.hpp"

#include <stdlib.h>

#include "base/check.hpp"
#include "base/log.hpp"
#include "os/files.hpp"

namespace trainyard::os {

TemporaryDirectory::TemporaryDirectory() {
  const char* parent = ::getenv("TMPDIR");
  path_ = std::string(parent && *parent ? parent : "/tmp") + "/trainyard-XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr, "the temporary directory is writable");
}

TemporaryDirectory::~TemporaryDirectory() {
  if (auto removed = remove_all(path_); !removed)
    log(Level::warning, "os", "left a temporary directory", {{"why", removed.error().message}});
}

}  // namespace trainyard::os

// Checks the format of an object store, which is named in its file `format`, and upgrades an
// earlier one.
//
// Threads: called before other threads use the store. Errors: invalid (a newer version wrote it),
// and those of files.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::objects {

// `path` is the directory of the store. Writes the file if the store is new.
Result<void> check_format(const std::string& path);

}  // namespace trainyard::objects

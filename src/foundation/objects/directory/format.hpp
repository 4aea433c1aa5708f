// Checks the format of an object store, which its file `format` names, and upgrades an earlier one.
//
// Threads: none other uses the store yet. Errors: invalid (a newer version wrote it), and those of
// files.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::objects {

// `path`: of the store; a new one gets the file.
Result<void> check_format(const std::string& path);

}  // namespace trainyard::objects

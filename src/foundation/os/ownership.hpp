// Changes the owner of all files of a tree.
//
// Threads: callable from anywhere. Errors: by errno, with the path.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

// Changes the owner and group of `path` and everything below it. Links themselves are changed, not
// followed; mounts in the tree are skipped. Requires: no other process changes the tree meanwhile.
Result<void> give_tree(const std::string& path, uint32_t user_id, uint32_t group_id);

}  // namespace trainyard::os

// Giving a whole tree to another user.
//
// Threads: callable from anywhere. Errors: by errno, with the path.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

// The tree at `path`, itself included, belongs to them afterwards. Links are given, not followed; what is
// mounted below is left alone. Requires: nobody else changes the tree meanwhile.
Result<void> give_tree(const std::string& path, uint32_t user_id, uint32_t group_id);

}  // namespace trainyard::os

// Suggests the correct name for a mistyped one: the name with the smallest edit distance.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// Return the name closest to `typed`; "" if none is close.
std::string nearest(std::string_view typed, std::span<const std::string> names);
std::string nearest(std::string_view typed, std::span<const std::string_view> names);

}  // namespace trainyard

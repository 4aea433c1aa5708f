// Finds the name that a mistyped one probably meant, by its edit distance.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trainyard {

// Returns the name closest to a mistyped one; "" if none is close.
std::string nearest(std::string_view typed, std::span<const std::string> names);
std::string nearest(std::string_view typed, std::span<const std::string_view> names);

}  // namespace trainyard

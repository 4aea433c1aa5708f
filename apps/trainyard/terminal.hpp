// Colours text if standard output is a terminal and NO_COLOR is not set.
#pragma once

#include <string>

namespace trainyard::apps {

enum class Paint { bold, dim, green, yellow, red };
std::string paint(Paint paint, const std::string& text);

}  // namespace trainyard::apps

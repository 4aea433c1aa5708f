// Colours where standard output is a terminal, and nothing where it is not (or NO_COLOR is set).
#pragma once

#include <string>

namespace trainyard::apps {

enum class Paint { bold, dim, green, yellow, red };
std::string paint(Paint paint, const std::string& text);

}  // namespace trainyard::apps

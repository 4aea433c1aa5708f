#include "base/enum_table.hpp"

#include "base/text.hpp"

namespace trainyard {

Error unknown_text(std::string_view text, std::string_view set) {
  return invalid("unknown " + std::string(set) + " '" + shorten(text, 60) + "'");
}

}  // namespace trainyard

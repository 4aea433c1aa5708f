#include "base/enum_table.hpp"

#include "base/text.hpp"

namespace trainyard {

Error unknown_text(std::string_view text, std::string_view set) {
  return invalid("'" + shorten(text, 60) + "' is not " + std::string(set));
}

}  // namespace trainyard

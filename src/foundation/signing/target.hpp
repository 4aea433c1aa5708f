// Splits the target of a request into its path and its query. Private to this module.
//
// Threads: pure functions.
#pragma once

#include <string_view>

namespace trainyard::signing {

inline std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

// Returns the query without the '?'; empty if the target has no query.
inline std::string_view query_of(std::string_view target) {
  const auto mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

}  // namespace trainyard::signing

// Reads members of untrusted JSON objects. Missing members and those of another type count as
// empty.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>

#include "base/json.hpp"

namespace trainyard::launch {

inline const Json& json_member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

inline std::string json_text(const Json& object, const char* name) {
  const Json& found = json_member(object, name);
  return found.is_string() ? found.get<std::string>() : "";
}

inline const Json::array_t& json_list(const Json& object, const char* name) {
  static const Json::array_t kNone;
  const Json& found = json_member(object, name);
  return found.is_array() ? *found.get_ptr<const Json::array_t*>() : kNone;
}

}  // namespace trainyard::launch

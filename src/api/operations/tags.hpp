// Converts tags to the shapes of services, each of which has a type of its own.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace trainyard::api {

// `Tag`: a shape with the members key and value.
template <class Tag>
std::vector<Tag> shown_tags(const std::map<std::string, std::string>& tags) {
  std::vector<Tag> shown;
  for (const auto& [key, value] : tags) shown.push_back({.key = key, .value = value});
  return shown;
}

}  // namespace trainyard::api

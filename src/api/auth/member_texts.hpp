// Reads members of a request by their names, as texts or as JSON.
//
// A path is "name", "name.name" or "names[].name": "[]" stands for each element of a list.
//
// Threads: pure functions. Errors: none; an absent member has no text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Returns null if the shape has no such member.
const shapes::Member* find_member(const shapes::Shape& shape, std::string_view name);

// Returns the texts at `path`: none if a member is absent, several if a list is on the path.
std::vector<std::string> texts_at(const shapes::Shape* shape, const void* value,
                                  std::string_view path);

// Returns the text of a member, or "" if it is absent.
std::string member_text(const shapes::Shape& shape, const void* structure, std::string_view path);

// Returns the structures, lists, maps, texts and flags of a request; other values are null.
Json json_of(const shapes::Shape& shape, const void* value);

}  // namespace trainyard::api

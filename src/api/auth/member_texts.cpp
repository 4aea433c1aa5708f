#include "auth/member_texts.hpp"

#include <algorithm>

namespace trainyard::api {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;

const Member* find_member(const Shape& shape, std::string_view name) {
  const auto found = std::ranges::find(shape.members, name, &Member::name);
  return found == shape.members.end() ? nullptr : &*found;
}

namespace {

std::string text_of(const Shape& shape, const void* value) {
  switch (shape.kind) {
    case ShapeKind::string:
    case ShapeKind::blob:
      return *static_cast<const std::string*>(value);
    case ShapeKind::integer:
      return std::to_string(*static_cast<const int64_t*>(value));
    case ShapeKind::boolean:
      return *static_cast<const bool*>(value) ? "true" : "false";
    default:
      return "";
  }
}

// Appends the texts at `path`: none if a member is absent, several if a list is on the path.
void collect(const Shape& shape, const void* value, std::string_view path,
             std::vector<std::string>& out) {
  if (!value) return;
  if (path.empty()) {
    out.push_back(text_of(shape, value));
    return;
  }
  if (path.starts_with("[]")) {
    if (shape.kind != ShapeKind::list) return;
    path.remove_prefix(path.starts_with("[].") ? 3 : 2);
    for (size_t i = 0; i < shape.size(value); ++i)
      collect(*shape.element, shape.at(value, i), path, out);
    return;
  }
  const size_t end = std::min(path.find_first_of(".["), path.size());
  const Member* member =
      shape.kind == ShapeKind::structure ? find_member(shape, path.substr(0, end)) : nullptr;
  if (!member) return;
  path.remove_prefix(end < path.size() && path[end] == '.' ? end + 1 : end);
  collect(*member->shape, member->find(value), path, out);
}

}  // namespace

std::vector<std::string> texts_at(const Shape* shape, const void* value, std::string_view path) {
  std::vector<std::string> out;
  if (shape) collect(*shape, value, path, out);
  return out;
}

std::string member_text(const Shape& shape, const void* structure, std::string_view path) {
  auto texts = texts_at(&shape, structure, path);
  return texts.empty() ? "" : std::move(texts.front());
}

}  // namespace trainyard::api

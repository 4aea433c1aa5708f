#include "auth/member_texts.hpp"

#include <algorithm>
#include <utility>

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

Json json_of(const Shape& shape, const void* value) {
  switch (shape.kind) {
    case ShapeKind::structure: {
      Json out = Json::object();
      for (const Member& member : shape.members)
        if (const void* found = member.find(value))
          out.emplace(member.name, json_of(*member.shape, found));
      return out;
    }
    case ShapeKind::list: {
      Json out = Json::array();
      for (size_t i = 0; i < shape.size(value); ++i)
        out.push_back(json_of(*shape.element, shape.at(value, i)));
      return out;
    }
    case ShapeKind::map: {
      std::pair found(&shape, Json::object());
      shape.each(value, &found, [](void* context, const std::string& key, const void* element) {
        auto& [of, out] = *static_cast<std::pair<const Shape*, Json>*>(context);
        out.emplace(key, json_of(*of->element, element));
      });
      return std::move(found.second);
    }
    case ShapeKind::string:
      return *static_cast<const std::string*>(value);
    case ShapeKind::boolean:
      return *static_cast<const bool*>(value);
    default:
      return nullptr;
  }
}

}  // namespace trainyard::api

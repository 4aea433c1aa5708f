#include "auth/request_tags.hpp"

#include "auth/member_texts.hpp"
#include "base/json.hpp"
#include "protocol/json.hpp"

namespace trainyard::api {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;

void set(ServiceValues& values, std::string name, std::vector<std::string> texts) {
  std::erase(texts, "");
  if (!texts.empty()) values.emplace_back(std::move(name), std::move(texts));
}

void add_tags(std::vector<std::string> keys, std::vector<std::string> values, Accesses& out) {
  for (size_t i = 0; i < keys.size() && i < values.size(); ++i)
    set(out.values, "aws:RequestTag/" + keys[i], {values[i]});
  set(out.values, "aws:TagKeys", std::move(keys));
}

void add_tag_map(const Shape& shape, const void* input, Accesses& out) {
  const Member* member = find_member(shape, "tags");
  const void* tags =
      member && member->shape->kind == ShapeKind::map ? member->find(input) : nullptr;
  if (!tags) return;
  std::pair<std::vector<std::string>, std::vector<std::string>> found;  // keys, values
  member->shape->each(tags, &found, [](void* into, const std::string& key, const void* value) {
    auto& [keys, values] = *static_cast<decltype(found)*>(into);
    keys.push_back(key);
    values.push_back(*static_cast<const std::string*>(value));
  });
  add_tags(std::move(found.first), std::move(found.second), out);
}

void add_ec2_tags(const Shape& shape, const void* input, Accesses& out) {
  std::string request;
  write_json(shape, input, request);
  const auto json = parse_json(request);
  if (!json) return;
  std::vector<std::string> keys, values;
  const auto add = [&](const Json& owner) {
    if (!owner.contains("Tags")) return;
    for (const Json& tag : owner["Tags"]) {
      keys.push_back(tag.value("Key", ""));
      values.push_back(tag.value("Value", ""));
    }
  };
  add(*json);
  if (json->contains("TagSpecifications"))
    for (const Json& each : (*json)["TagSpecifications"]) add(each);
  add_tags(std::move(keys), std::move(values), out);
}

}  // namespace trainyard::api

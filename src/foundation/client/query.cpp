#include "client/query.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/xml.hpp"

namespace trainyard::client {
namespace {

constexpr std::string_view kItem = "member";
constexpr std::string_view kEc2Item = "item";

// `item`: the name of the elements of lists.
Json json_of(const XmlElement& element, std::string_view item) {
  if (element.children.empty()) return element.text;
  const bool list = std::ranges::all_of(
      element.children, [&](const XmlElement& child) { return child.name == item; });
  Json json = list ? Json::array() : Json::object();
  for (const XmlElement& child : element.children) {
    if (list)
      json.push_back(json_of(child, item));
    else
      json[child.name] = json_of(child, item);
  }
  return json;
}

}  // namespace

std::string query_body(std::string_view operation, std::string_view version, const Json& input) {
  std::string body = "Action=" + percent_encode(operation) + "&Version=" + percent_encode(version);
  const auto add = [&](const std::string& name, const Json& value) {
    body += "&" + percent_encode(name) + "=" + percent_encode(string_or_dump(value));
  };
  for (const auto& [name, value] : input.items()) {
    if (!value.is_array()) {
      add(name, value);
      continue;
    }
    for (size_t i = 0; i < value.size(); ++i)
      add(name + ".member." + std::to_string(i + 1), value[i]);
  }
  return body;
}

Result<Json> query_answer(std::string_view body) {
  const XmlElement answer = TRY(parse_xml(body));
  for (const XmlElement& part : answer.children)
    if (part.name.ends_with("Result")) {
      Json result = json_of(part, kItem);
      return result.is_object() ? std::move(result) : Json::object();
    }
  return Json::object();
}

Result<Json> ec2_answer(std::string_view body) {
  Json answer = json_of(TRY(parse_xml(body)), kEc2Item);
  return answer.is_object() ? std::move(answer) : Json::object();
}

Json items_of(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  return found != answer.end() && found->is_array() ? *found : Json::array();
}

}  // namespace trainyard::client

#include "base/json.hpp"

#include "base/text.hpp"

namespace trainyard {
namespace {

constexpr int kDepthMax = 100;  // far above the depth of any real document

const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

Error wrong_member(const Json* found, std::string_view name, std::string_view wanted) {
  return invalid("'" + std::string(name) + "' must be " + std::string(wanted) +
                 (found ? ", not " + shorten(dump(*found), 60) : ", but it is missing"));
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDepthMax) too_deep = true;
    return !too_deep;
  };
  try {
    Json value = Json::parse(text, limit);
    if (too_deep) return invalid("JSON nested deeper than " + std::to_string(kDepthMax));
    return value;
  } catch (const Json::exception& fault) {
    return invalid("not JSON: " + std::string(fault.what()));
  }
}

Result<std::string> string_at(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  if (!found || !found->is_string()) return wrong_member(found, name, "a string");
  return found->get<std::string>();
}

Result<int64_t> int_at(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  if (!found || !found->is_number_integer()) return wrong_member(found, name, "a whole number");
  if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t(INT64_MAX))
    return wrong_member(found, name, "a whole number below 2^63");
  return found->get<int64_t>();
}

Result<double> double_at(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  if (!found || !found->is_number()) return wrong_member(found, name, "a number");
  return found->get<double>();
}

Result<bool> bool_at(const Json& object, std::string_view name) {
  const Json* found = member(object, name);
  if (!found || !found->is_boolean()) return wrong_member(found, name, "true or false");
  return found->get<bool>();
}

std::string string_or(const Json& object, std::string_view name, std::string_view otherwise) {
  const Json* found = member(object, name);
  return found && found->is_string() ? found->get<std::string>() : std::string(otherwise);
}

double double_or(const Json& object, std::string_view name, double otherwise) {
  const Json* found = member(object, name);
  return found && found->is_number() ? found->get<double>() : otherwise;
}

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string string_or_dump(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump(value);
}

}  // namespace trainyard

#include "auth/post_policy.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

Error invalid_policy(const std::string& what) { return invalid("Invalid Policy: " + what); }
Error policy_violation(const std::string& what) {
  return denied("Invalid according to Policy: " + what);
}

// Reads a number, or a string of digits.
Result<uint64_t> size_of(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  const auto number =
      json.is_string() ? parse_int(json.get<std::string>()) : Result<int64_t>(invalid(""));
  if (!number || *number < 0) return invalid_policy("content-length-range takes two sizes.");
  return uint64_t(*number);
}

Result<void> add(PostPolicy& policy, bool whole, std::string field, const Json& value) {
  if (!value.is_string())
    return invalid_policy("Invalid Simple-Condition: value must be a string.");
  if (policy.conditions.size() == kPostConditionsMax) return invalid_policy("too many conditions.");
  policy.conditions.push_back({whole, to_lower(field), value.get<std::string>()});
  return ok();
}

// ["eq", "$key", "value"]
Result<void> read_list(const Json& list, PostPolicy& policy) {
  if (list.size() != 3 || !list[0].is_string())
    return invalid_policy(
        "Invalid Condition: a list must have three elements, the first of which is an operator.");
  const std::string kind = to_lower(list[0].get<std::string>());
  if (kind == "content-length-range") {
    // All ranges of a policy apply.
    policy.bytes_min = std::max(policy.bytes_min, TRY(size_of(list[1])));
    policy.bytes_max = std::min(policy.bytes_max, TRY(size_of(list[2])));
    return ok();
  }
  if (kind != "eq" && kind != "starts-with")
    return invalid_policy("Invalid Condition: unknown operation '" + shorten(kind, 60) + "'.");
  const std::string field = list[1].is_string() ? list[1].get<std::string>() : "";
  if (field.size() < 2 || field[0] != '$')
    return invalid_policy(
        "Invalid Condition: the second element of a list must be the name of a field, after '$'.");
  return add(policy, kind == "eq", field.substr(1), list[2]);
}

std::string describe(const PostCondition& condition) {
  return std::string("[\"") + (condition.whole ? "eq" : "starts-with") + "\", \"$" +
         shorten(condition.field, 100) + "\", \"" + shorten(condition.value, 200) + "\"]";
}

bool is_exempt(std::string_view field) {
  return field == "policy" || field == "x-amz-signature" || field == "file" ||
         field.starts_with("x-ignore-");
}

}  // namespace

Result<PostPolicy> parse_post_policy(std::string_view json) {
  const auto document = parse_json(json);
  if (!document || !document->is_object()) return invalid_policy("Invalid JSON.");
  for (const auto& [name, value] : document->items())
    if (name != "expiration" && name != "conditions")
      return invalid_policy("Unexpected: '" + shorten(name, 60) + "'.");
  PostPolicy policy;
  const auto expiration = string_at(*document, "expiration");
  if (!expiration) return invalid_policy("Policy missing expiration.");
  const auto until = parse_iso8601(*expiration);
  if (!until)
    return invalid_policy("Invalid 'expiration' value: '" + shorten(*expiration, 60) + "'.");
  policy.expiration = *until;
  const auto conditions = document->find("conditions");
  if (conditions == document->end() || !conditions->is_array())
    return invalid_policy("Policy missing conditions.");
  for (const Json& condition : *conditions) {
    if (condition.is_array()) {
      TRY(read_list(condition, policy));
    } else if (condition.is_object() && condition.size() == 1) {
      TRY(add(policy, true, condition.begin().key(), condition.begin().value()));
    } else {
      return invalid_policy(
          "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.");
    }
  }
  return policy;
}

Result<void> check_post_policy(const PostPolicy& policy, const NameValues& fields,
                               std::string_view bucket, Instant now) {
  if (now > policy.expiration) return policy_violation("Policy expired.");
  for (const PostCondition& condition : policy.conditions) {
    std::string_view value = condition.field == "bucket" ? bucket : std::string_view();
    if (condition.field != "bucket")
      for (const auto& [name, given] : fields)
        if (name == condition.field) value = given;
    const bool holds =
        condition.whole ? value == condition.value : value.starts_with(condition.value);
    if (!holds) return policy_violation("Policy Condition failed: " + describe(condition));
  }
  std::string extra;
  for (const auto& [name, value] : fields) {
    const bool named =
        std::any_of(policy.conditions.begin(), policy.conditions.end(),
                    [&name = name](const auto& condition) { return condition.field == name; });
    if (!named && !is_exempt(name))
      extra.append(extra.empty() ? "" : ", ").append(shorten(name, 100));
  }
  if (!extra.empty()) return policy_violation("Extra input fields: " + extra);
  return ok();
}

}  // namespace trainyard::api

#include "policy/policy.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {

Policy::Policy(PolicyKind kind, std::string document, std::string version, std::string id,
               std::vector<Statement> statements)
    : kind_(kind),
      document_(std::move(document)),
      version_(std::move(version)),
      id_(std::move(id)),
      statements_(std::move(statements)) {}

Policy::~Policy() = default;

std::vector<std::string> Policy::context_keys() const {
  std::vector<std::string> all, keys;
  for (const Statement& statement : statements_) {
    for (const Pattern& resource : statement.resources) resource.add_keys(all);
    for (const Condition& condition : statement.conditions) condition.add_keys(all);
  }
  for (std::string& key : all)
    if (std::ranges::none_of(
            keys, [&](const std::string& one) { return equals_ignoring_case(one, key); }))
      keys.push_back(std::move(key));
  return keys;
}

size_t policy_size(std::string_view json) {
  size_t size = 0;
  bool in_string = false, escaped = false;
  for (const char c : json) {
    if (in_string || std::string_view(" \t\r\n").find(c) == std::string_view::npos) ++size;
    if (c == '"' && !escaped) in_string = !in_string;
    escaped = in_string && c == '\\' && !escaped;
  }
  return size;
}

}  // namespace trainyard::policy

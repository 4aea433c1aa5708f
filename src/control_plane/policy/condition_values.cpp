#include "policy/condition_values.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::policy {

void ConditionValues::set(std::string_view name, std::string value) {
  std::vector<std::string> values;
  values.push_back(std::move(value));
  set(name, std::move(values));
}

void ConditionValues::set(std::string_view name, std::vector<std::string> values) {
  std::string lower = to_lower(name);
  const auto at = std::ranges::find(entries_, lower, &Entry::name);
  if (values.empty()) {
    if (at != entries_.end()) entries_.erase(at);
  } else if (at != entries_.end()) {
    at->values = std::move(values);
  } else {
    entries_.push_back({std::move(lower), std::move(values)});
  }
}

std::span<const std::string> ConditionValues::find(std::string_view name) const {
  return find_lower(to_lower(name));
}

std::span<const std::string> ConditionValues::find_lower(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return entry.values;
  return {};
}

}  // namespace trainyard::policy

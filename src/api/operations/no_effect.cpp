#include "operations/no_effect.hpp"

namespace trainyard::api {
namespace {

bool is_set(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_number() || !value.empty();
}

bool has(const Json& at, std::string_view path) {
  if (path.empty()) return is_set(at);
  const auto dot = path.find('.');
  std::string_view name = path.substr(0, dot);
  const std::string_view rest = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  const bool of_elements = name.ends_with("[]");
  if (of_elements) name.remove_suffix(2);
  if (!at.is_object()) return false;
  const auto found = at.find(std::string(name));
  if (found == at.end()) return false;
  if (!of_elements) return has(*found, rest);
  if (!found->is_array()) return false;
  for (const Json& element : *found)
    if (has(element, rest)) return true;
  return false;
}

}  // namespace

std::vector<std::string> notes_of(const Json& request, std::span<const NoEffect> table) {
  std::vector<std::string> notes;
  for (const NoEffect& row : table)
    if (has(request, row.member) && (row.unless.empty() || !has(request, row.unless)))
      notes.push_back(std::string(row.member) + " has no effect here: " + std::string(row.instead));
  return notes;
}

}  // namespace trainyard::api

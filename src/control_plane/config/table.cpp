#include "config/table.hpp"

#include <vector>

#include "base/log.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

namespace trainyard::config {

void Table::use_former_name(const char* key, const char* deprecated) const {
  log(Level::warning, "config", "a deprecated key", {{"key", name(deprecated)}, {"use", key}});
}

Error Table::refused(const std::string& key, std::string_view accepted) const {
  if (!value_.contains(key))
    return invalid(name(key) + " is missing: it must be " + std::string(accepted));
  const toml::value& found = value_.at(key);
  const std::string shown =
      secrets_.contains(key) ? std::string(describe_type(found)) : format_value(found);
  return invalid(name(key) + " must be " + std::string(accepted) + ", not " + shown +
                 line_of(found));
}

Error Table::refused_element(const std::string& key, std::string_view element,
                             std::string_view accepted) const {
  return invalid(name(key) + ": " + format_text(element) + " must be " + std::string(accepted) +
                 (value_.contains(key) ? line_of(value_.at(key)) : ""));
}

Result<void> Table::nothing_else() const {
  for (const auto& [key, value] : value_.as_table()) {
    if (known_.contains(key)) continue;
    const std::string names = join(known_, ", ");
    const std::vector<std::string> all(known_.begin(), known_.end());
    const std::string near = nearest(key, all);
    return invalid("unknown key '" + key + "'" + (location_.empty() ? "" : " in " + location_) +
                   (near.empty() ? "" : "; did you mean " + near + "?") + "; known keys: " + names);
  }
  return {};
}

std::string Table::line_of(const toml::value& value) {
  return " (line " + std::to_string(value.location().line()) + " of the file)";
}

}  // namespace trainyard::config

// Table reads one table of the configuration file, and records which keys are known, so that others
// can be rejected.
//
// Threads: confined to one. Errors: invalid, with the key and the expected type.
// Lifetime: the value outlives the table.
#pragma once

#include <map>
#include <set>
#include <string>
#include <toml.hpp>
#include <type_traits>
#include <vector>

#include "base/log.hpp"
#include "base/nearest.hpp"
#include "base/result.hpp"

namespace trainyard::config {

class Table {
 public:
  Table(const toml::value& value, std::string location)
      : value_(value), location_(std::move(location)) {}

  // A whole number is also accepted where any number is.
  template <class T>
  Result<void> read(const char* key, T& into) {
    known_.insert(key);
    if (!value_.contains(key)) return {};
    const auto& found = value_.at(key);
    if constexpr (std::is_same_v<T, double>) {
      if (found.is_integer()) {
        into = double(found.as_integer());
        return {};
      }
    }
    try {
      into = toml::get<T>(found);
      return {};
    } catch (const std::exception&) {
      return invalid(name(key) + " must be " + wanted(into) + " (line " +
                     std::to_string(found.location().line()) + " of the file)");
    }
  }

  // Also accepts the former name of the key, until the next version.
  template <class T>
  Result<void> read_renamed(const char* key, const char* deprecated, T& into) {
    if (value_.contains(key) || !value_.contains(deprecated)) return read(key, into);
    log(Level::warning, "config", "a deprecated key", {{"key", name(deprecated)}, {"use", key}});
    return read(deprecated, into);
  }

  // Reads each element of an array of tables, or the one table of that name.
  template <class F>
  Result<void> each(const char* key, F read_one) {
    known_.insert(key);
    if (!value_.contains(key)) return {};
    const auto& found = value_.at(key);
    if (found.is_table()) {
      TRY(read_one(Table(found, name(key))));
      return {};
    }
    if (!found.is_array())
      return invalid(name(key) + " must be a table, [" + key + "] or [[" + key + "]]");
    size_t index = 0;
    for (const auto& element : found.as_array()) {
      if (!element.is_table())
        return invalid(name(key) + " must be written as tables, [[" + key + "]]");
      TRY(read_one(Table(element, name(key) + "[" + std::to_string(index++) + "]")));
    }
    return {};
  }

  // Reads each member of a table of tables, with its name.
  template <class F>
  Result<void> each_named(const char* key, F read_one) {
    known_.insert(key);
    if (!value_.contains(key)) return {};
    if (!value_.at(key).is_table())
      return invalid(name(key) + " must be tables, [" + key + ".\"NAME\"]");
    for (const auto& [member, element] : value_.at(key).as_table()) {
      if (!element.is_table()) return invalid(name(key) + "." + member + " must be a table");
      TRY(read_one(member, Table(element, name(key) + ".\"" + member + "\"")));
    }
    return {};
  }

  // Rejects unknown keys. Requires: every known key was read.
  Result<void> nothing_else() const {
    for (const auto& [key, value] : value_.as_table()) {
      if (known_.count(key)) continue;
      std::string names;
      for (const auto& one : known_) names += (names.empty() ? "" : ", ") + one;
      const std::vector<std::string> all(known_.begin(), known_.end());
      const std::string near = nearest(key, all);
      return invalid("unknown key '" + key + "'" + (location_.empty() ? "" : " in " + location_) +
                     (near.empty() ? "" : "; did you mean " + near + "?") +
                     "; known keys: " + names);
    }
    return {};
  }

  bool has(const char* key) const { return value_.contains(key); }
  std::string name(const std::string& key) const {
    return location_.empty() ? key : location_ + "." + key;
  }

 private:
  static std::string wanted(const std::string&) { return "a string"; }
  static std::string wanted(bool) { return "true or false"; }
  static std::string wanted(double) { return "a number"; }
  static std::string wanted(int64_t) { return "a whole number"; }
  static std::string wanted(const std::vector<std::string>&) { return "a list of strings"; }
  static std::string wanted(const std::map<std::string, std::string>&) {
    return "a table of strings";
  }

  const toml::value& value_;
  std::string location_;
  std::set<std::string> known_;
};

}  // namespace trainyard::config

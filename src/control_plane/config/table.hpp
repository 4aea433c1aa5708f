// Table reads one table of the configuration file, and records the known keys, so that unknown ones
// can be rejected.
//
// Threads: confined to one.
// Errors: invalid, with the full name of the key, its value (except secrets), what is accepted, and
//   the line of the file: `server.log_files must be between 1 and 1000, not 0 (line 3 of the file)`
// Lifetime: the value outlives the table.
#pragma once

#include <concepts>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <toml.hpp>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "config/shown_value.hpp"

namespace trainyard::config {

// The accepted values of a number, including both ends.
template <class T>
struct Range {
  T least, most;
  std::string_view zero = "";  // the meaning of 0, for errors: "forever"
  std::string_view note = "";  // the meaning of the number: ": of one instance and hour"

  // NaN is in no range.
  bool contains(T number) const { return number >= least && number <= most; }
  std::string text() const {
    std::string least_text = number_text(least);
    if (!zero.empty()) least_text.append(" (").append(zero).append(")");
    return "between " + least_text + " and " + number_text(most) + std::string(note);
  }

 private:
  static std::string number_text(double number) { return format_number(number); }
  static std::string number_text(int64_t number) { return std::to_string(number); }
};

class Table {
 public:
  Table(const toml::value& value, std::string location)
      : value_(value), location_(std::move(location)) {}

  // Reads the value of a key; without the key, `into` stays as it is. A double may be written as a
  // whole number.
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
      return refused(key, wanted(into));
    }
  }

  // Reads a number. Also rejects a number outside of the range, and a missing key if the default in
  // `into` is outside of it.
  template <class T>
  Result<void> read(const char* key, T& into, const std::type_identity_t<Range<T>>& range) {
    TRY(read(key, into));
    return range.contains(into) ? ok() : refused(key, range.text());
  }

  // Reads a whole number of units.
  Result<void> read_duration(const char* key, Duration& into, Duration unit,
                             const Range<int64_t>& range) {
    int64_t count = into / unit;
    TRY(read(key, count, range));
    into = count * unit;
    return {};
  }

  // Reads a secret value: errors show only its type.
  template <class T>
  Result<void> read_secret(const char* key, T& into) {
    secrets_.insert(key);
    return read(key, into);
  }

  // Also accepts the deprecated name of the key.
  template <class T>
  Result<void> read_renamed(const char* key, const char* deprecated, T& into) {
    if (value_.contains(key) || !value_.contains(deprecated)) return read(key, into);
    use_former_name(key, deprecated);
    return read(deprecated, into);
  }

  // Reads each element of an array of tables, or the one table of that name.
  template <class F>
  Result<void> each(const std::string& key, F read_one) {
    known_.insert(key);
    if (!value_.contains(key)) return {};
    const auto& found = value_.at(key);
    if (found.is_table()) {
      TRY(read_one(Table(found, name(key))));
      return {};
    }
    if (!found.is_array()) return refused(key, "a table, [" + key + "] or [[" + key + "]]");
    size_t index = 0;
    for (const auto& element : found.as_array()) {
      if (!element.is_table()) return refused(key, "written as tables, [[" + key + "]]");
      TRY(read_one(Table(element, name(key) + "[" + std::to_string(index++) + "]")));
    }
    return {};
  }

  // Reads each member of a table of tables, with its name.
  template <class F>
  Result<void> each_named(const std::string& key, F read_one) {
    known_.insert(key);
    if (!value_.contains(key)) return {};
    if (!value_.at(key).is_table()) return refused(key, "tables, [" + key + ".\"NAME\"]");
    for (const auto& [member, element] : value_.at(key).as_table()) {
      const std::string location = name(key) + "." + format_text(member);
      if (!element.is_table())
        return invalid(location + " must be a table, not " + format_value(element) +
                       line_of(element));
      TRY(read_one(member, Table(element, location)));
    }
    return {};
  }

  // Returns the error for an invalid or missing value. `accepted` follows "must be" in the text.
  Error refused(const std::string& key, std::string_view accepted) const;
  // Returns the error for an invalid element of a list, or part of a value.
  Error refused_element(const std::string& key, std::string_view element,
                        std::string_view accepted) const;

  // Returns an error if the table has unknown keys. Requires: all known keys were read.
  Result<void> nothing_else() const;

  bool has(const char* key) const { return value_.contains(key); }
  std::string name(const std::string& key) const {
    return location_.empty() ? key : location_ + "." + key;
  }

 private:
  void use_former_name(const char* key, const char* deprecated) const;
  static std::string line_of(const toml::value& value);

  static std::string_view wanted(const std::string&) { return "a string"; }
  static std::string_view wanted(bool) { return "true or false"; }
  static std::string_view wanted(double) { return "a number"; }
  static std::string_view wanted(int64_t) { return "a whole number"; }
  static std::string_view wanted(const std::vector<std::string>&) { return "a list of strings"; }
  static std::string_view wanted(const std::map<std::string, std::string>&) {
    return "a table of strings";
  }

  const toml::value& value_;
  std::string location_;
  std::set<std::string> known_;
  std::set<std::string> secrets_;
};

}  // namespace trainyard::config

// Fields reads the members of a record one by one. A missing member keeps its default; an invalid one is an error of the
// record.
//
//   Fields fields(json, "channel");
//   fields.read("name", channel.name).read("s3_uri", channel.s3_uri);
//   TRY(fields.result());
//
// Threads: plain values. Errors: invalid, naming record and member; the first fault is kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"

namespace trainyard::domain {

class Fields {
 public:
  // Lifetime: json must outlive this.
  Fields(const Json& json, std::string_view record);

  Fields& read(std::string_view name, std::string& value);
  Fields& read(std::string_view name, bool& value);
  Fields& read(std::string_view name, double& value);
  Fields& read(std::string_view name, int64_t& value);
  Fields& read(std::string_view name, uint64_t& value);
  Fields& read(std::string_view name, uint32_t& value);
  Fields& read(std::string_view name, Json& value);
  Fields& read(std::string_view name, Instant& value);  // milliseconds since 1970
  Fields& read(std::string_view name, std::optional<Instant>& value);
  Fields& read(std::string_view name, std::optional<int>& value);
  Fields& read(std::string_view name, std::optional<int64_t>& value);
  Fields& read(std::string_view name, std::optional<uint32_t>& value);
  Fields& read(std::string_view name, std::vector<std::string>& value);
  Fields& read(std::string_view name, std::map<std::string, std::string>& value);

  // Reads a member that is text with a closed set of values.
  template <class T>
  Fields& read(std::string_view name, T& value, Result<T> (*parse)(std::string_view)) {
    std::string text;
    if (!present(name)) return *this;
    read(name, text);
    if (!error_) take(name, parse(text), value);
    return *this;
  }
  template <class T>
  Fields& read(std::string_view name, std::optional<T>& value, Result<T> (*parse)(std::string_view)) {
    if (!present(name)) return *this;
    T found{};
    read(name, found, parse);
    if (!error_) value = found;
    return *this;
  }
  // Reads a member that is a record, or a list of records.
  template <class T>
  Fields& read(std::string_view name, T& value, Result<T> (*from_json)(const Json&)) {
    if (const Json* found = present(name)) take(name, from_json(*found), value);
    return *this;
  }
  template <class T>
  Fields& read(std::string_view name, std::optional<T>& value, Result<T> (*from_json)(const Json&)) {
    if (const Json* found = present(name)) take(name, from_json(*found), value.emplace());
    return *this;
  }
  template <class T>
  Fields& read(std::string_view name, std::vector<T>& value, Result<T> (*from_json)(const Json&)) {
    const Json* found = present(name);
    if (!found) return *this;
    if (!found->is_array()) return fail(name, "a list");
    value.clear();
    for (const Json& each : *found) {
      T element{};
      take(name, from_json(each), element);
      if (error_) return *this;
      value.push_back(std::move(element));
    }
    return *this;
  }

  Result<void> result() const;

 private:
  // Returns nullptr if the member is missing or null, or if there was an earlier fault.
  const Json* present(std::string_view name) const;
  Fields& fail(std::string_view name, std::string_view wanted);
  template <class T>
  void take(std::string_view name, Result<T> found, T& value) {
    if (error_) return;
    if (found)
      value = std::move(found).value();
    else
      error_ = std::move(found).error().in(std::string(record_) + "." + std::string(name));
  }

  const Json& json_;
  std::string_view record_;
  std::optional<Error> error_;
};

inline Json instant_json(const std::optional<Instant>& instant) {
  return instant ? Json(to_milliseconds(*instant)) : Json();
}

}  // namespace trainyard::domain

// A JsonRecord describes the members of a record once. Its writer and its reader are both derived
// from the description.
//
//   constexpr auto kChannel = json_record<Channel>("channel", [](auto& side, auto& channel) {
//     // always written
//     side("name", channel.name);
//     // omitted if it is empty, 0, false or unset
//     side.if_set("groups", channel.groups);
//     // in a form: here the texts of an enum
//     side("input_mode", channel.input_mode, kInputModes);
//   });
//   Json json = kChannel.write(channel);
//   Result<Channel> read = kChannel.read(json);
//
// The description is called with a JsonMemberWriter and a const record, or with a JsonMemberReader
// and a record. Reading keeps the default of a member that is missing or null, and ignores unknown
// members, so that members can be added.
//
// These types need no form: strings, numbers, bool, Instant and Duration (both in milliseconds),
// Json, lists and maps of strings, and optionals of these. A member of another type needs a form,
// which also applies to optionals and lists of the type. A form is a JsonRecord, an EnumTable, a
// function that parses text (written by to_string) or reads JSON (written by to_json), or a class
// with these members:
//
//   using Value = AttemptId;
//   static Json write(const AttemptId&);
//   static Result<void> read_into(const Json&, AttemptId&);
//
// Threads: constants and plain values. Errors: invalid, naming record, member and value; the first
// fault is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard {

// -- forms ----------------------------------------------------------------------------------------

template <class Form>
struct JsonForm {
  using Value = typename Form::Value;
  static constexpr bool kText = false;
  static Json write(const Value& value, const Form& form) { return form.write(value); }
  static Result<void> read_into(const Json& json, Value& value, const Form& form) {
    return form.read_into(json, value);
  }
};

template <class T>
struct JsonForm<Result<T>(const Json&)> {
  using Value = T;
  static constexpr bool kText = false;
  static Json write(const T& value, Result<T> (*)(const Json&)) { return to_json(value); }
  static Result<void> read_into(const Json& json, T& value, Result<T> (*read)(const Json&)) {
    value = TRY(read(json));
    return {};
  }
};

template <class T>
struct JsonForm<Result<T>(std::string_view)> {
  using Value = T;
  static constexpr bool kText = true;
  static Json write(const T& value, Result<T> (*)(std::string_view)) {
    return std::string(to_string(value));
  }
  static Result<T> parse(std::string_view text, Result<T> (*parse)(std::string_view)) {
    return parse(text);
  }
};

template <class E>
struct JsonForm<EnumTable<E>> {
  using Value = E;
  static constexpr bool kText = true;
  static Json write(const E& value, const EnumTable<E>& table) {
    return std::string(table.text(value));
  }
  static Result<E> parse(std::string_view text, const EnumTable<E>& table) {
    return table.parse(text);
  }
};

// -- writing --------------------------------------------------------------------------------------

class JsonMemberWriter {
 public:
  static constexpr bool kReads = false;

  void operator()(std::string_view name, const std::string& value);
  // deleted, because a pointer would be written as a bool
  void operator()(std::string_view name, const char* value) = delete;
  void operator()(std::string_view name, bool value);
  void operator()(std::string_view name, double value);
  void operator()(std::string_view name, int value);
  void operator()(std::string_view name, int64_t value);
  void operator()(std::string_view name, uint64_t value);
  void operator()(std::string_view name, uint32_t value);
  void operator()(std::string_view name, Instant value);
  void operator()(std::string_view name, Duration value);
  void operator()(std::string_view name, const std::vector<std::string>& value);
  void operator()(std::string_view name, const std::map<std::string, std::string>& value);
  void operator()(std::string_view name, const Json& value);
  // Writes null if the value is unset.
  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if (value)
      (*this)(name, *value);
    else
      put(name, Json());
  }
  template <class T, class Form>
  void operator()(std::string_view name, const T& value, const Form& form) {
    put(name, in_form(value, form));
  }

  // Writes the member if it is not empty, 0, false or unset.
  template <class T>
  void if_set(std::string_view name, const T& value) {
    if (value != T{}) (*this)(name, value);
  }
  template <class T, class Form>
  void if_set(std::string_view name, const T& value, const Form& form) {
    if constexpr (std::is_enum_v<T>) {
      if (value != T{}) put(name, in_form(value, form));
    } else {
      // Empty are: an empty list or record, and null for an unset optional.
      if (Json json = in_form(value, form); !json.empty()) put(name, std::move(json));
    }
  }
  // Writes the member if `written`. A reader reads it in any case.
  template <class... Value>
  void when(bool written, std::string_view name, const Value&... value) {
    if (written) (*this)(name, value...);
  }

  Json json() && { return std::move(json_); }

 private:
  void put(std::string_view name, Json value);
  template <class T, class Form>
  static Json in_form(const T& value, const Form& form) {
    using Value = typename JsonForm<Form>::Value;
    if constexpr (std::is_same_v<T, Value>) {
      return JsonForm<Form>::write(value, form);
    } else if constexpr (std::is_same_v<T, std::optional<Value>>) {
      return value ? JsonForm<Form>::write(*value, form) : Json();
    } else {
      Json list = Json::array();
      for (const Value& each : value) list.push_back(JsonForm<Form>::write(each, form));
      return list;
    }
  }

  Json json_ = Json::object();
};

// -- reading --------------------------------------------------------------------------------------

class JsonMemberReader {
 public:
  static constexpr bool kReads = true;

  // Lifetime: json and record must outlive this.
  JsonMemberReader(const Json& json, std::string_view record);

  void operator()(std::string_view name, std::string& value);
  void operator()(std::string_view name, bool& value);
  void operator()(std::string_view name, double& value);
  void operator()(std::string_view name, int& value);
  void operator()(std::string_view name, int64_t& value);
  void operator()(std::string_view name, uint64_t& value);
  void operator()(std::string_view name, uint32_t& value);
  void operator()(std::string_view name, Instant& value);
  void operator()(std::string_view name, Duration& value);
  void operator()(std::string_view name, std::vector<std::string>& value);
  void operator()(std::string_view name, std::map<std::string, std::string>& value);
  void operator()(std::string_view name, Json& value);
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value) {
    if (present(name)) (*this)(name, value.emplace());
  }
  template <class T, class Form>
  void operator()(std::string_view name, T& value, const Form& form) {
    using Value = typename JsonForm<Form>::Value;
    const Json* found = present(name);
    if (!found) return;
    if constexpr (std::is_same_v<T, Value>) {
      take(name, *found, value, form);
    } else if constexpr (std::is_same_v<T, std::optional<Value>>) {
      take(name, *found, value.emplace(), form);
    } else {
      if (!found->is_array()) return fail(name, "a list");
      value.clear();
      for (const Json& each : *found) {
        if (error_) return;
        take(name, each, value.emplace_back(), form);
      }
    }
  }

  template <class T, class... Form>
  void if_set(std::string_view name, T& value, const Form&... form) {
    (*this)(name, value, form...);
  }
  template <class T, class... Form>
  void when(bool, std::string_view name, T& value, const Form&... form) {
    (*this)(name, value, form...);
  }

  Result<void> result() &&;

 private:
  // Returns nullptr if the member is missing or null, or if there was an earlier fault.
  const Json* present(std::string_view name) const;
  void fail(std::string_view name, std::string_view wanted);
  void keep(std::string_view name, Error error);

  template <class T, class Form>
  void take(std::string_view name, const Json& json, T& value, const Form& form) {
    if constexpr (JsonForm<Form>::kText) {
      if (!json.is_string()) return fail(name, "a string");
      if (auto parsed = JsonForm<Form>::parse(json.get_ref<const std::string&>(), form))
        value = *std::move(parsed);
      else
        keep(name, std::move(parsed).error());
    } else {
      if (auto read = JsonForm<Form>::read_into(json, value, form); !read)
        keep(name, std::move(read).error());
    }
  }

  const Json& json_;
  const std::string_view record_;
  std::optional<Error> error_;
};

// True while a description is called to read: `if constexpr (kReads<decltype(side)>)`.
template <class Side>
inline constexpr bool kReads = std::remove_reference_t<Side>::kReads;

// -- records --------------------------------------------------------------------------------------

template <class T, class Describe, class Check>
class JsonRecord {
 public:
  using Value = T;

  constexpr JsonRecord(std::string_view name, Describe describe, Check check)
      : name_(name), describe_(describe), check_(check) {}

  Json write(const T& record) const {
    JsonMemberWriter side;
    describe_(side, record);
    return std::move(side).json();
  }
  Result<T> read(const Json& json) const {
    T record{};
    TRY(read_into(json, record));
    return record;
  }
  // Reads into `record`; its members are the defaults.
  Result<void> read_into(const Json& json, T& record) const {
    JsonMemberReader side(json, name_);
    describe_(side, record);
    TRY(std::move(side).result());
    return check_(record);
  }

 private:
  std::string_view name_;
  Describe describe_;
  Check check_;
};

// Makes a JsonRecord. Errors name members as "NAME.MEMBER". `check(record)` is called after reading
// and returns a Result<void>.
template <class T, class Describe>
constexpr auto json_record(std::string_view name, Describe describe) {
  const auto check = [](const T&) -> Result<void> { return {}; };
  return JsonRecord<T, Describe, decltype(check)>(name, describe, check);
}
template <class T, class Describe, class Check>
constexpr auto json_record(std::string_view name, Describe describe, Check check) {
  return JsonRecord<T, Describe, Check>(name, describe, check);
}

}  // namespace trainyard

// A CompleteRecord is a JsonRecord whose members must all be present in the JSON that is read: a
// missing member is an error, and does not keep its default.
//
//   constexpr auto kLogin = complete(json_record<Login>("login", [](auto& side, auto& login) {
//     side("host", login.host);
//     side("users", login.users);  // a list that is missing must not mean "everyone"
//     side.if_set("port", login.port);  // may be missing
//   }));
//
// A member is required if the description writes it for a default value. A CompleteRecord can
// describe members and list elements of other records.
//
// Threads: constants. Errors: those of JsonRecord; invalid, with the name of the missing member.
#pragma once

#include <string>

#include "base/json_record.hpp"

namespace trainyard {

template <class Record>
class CompleteRecord {
 public:
  using Value = typename Record::Value;

  constexpr explicit CompleteRecord(Record record) : record_(record) {}

  Json write(const Value& value) const { return record_.write(value); }
  Result<Value> read(const Json& json) const {
    Value value{};
    TRY(read_into(json, value));
    return value;
  }
  // Reads into `value`, whose members are the defaults.
  Result<void> read_into(const Json& json, Value& value) const {
    const Json required = record_.write(Value{});
    if (json.is_object())  // else reading fails, with the record's name
      for (const auto& [name, written] : required.items()) {
        const auto found = json.find(name);
        if (found == json.end() || (found->is_null() && !written.is_null()))
          return invalid("'" + name + "' is missing");
      }
    return record_.read_into(json, value);
  }

 private:
  Record record_;
};

template <class Record>
constexpr auto complete(Record record) {
  return CompleteRecord<Record>(record);
}

}  // namespace trainyard

// Defines the JSON forms (base/json_record.hpp) of a job's identifiers, which records of several
// modules use.
//
// Threads: constants. Errors: invalid.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "base/json_record.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

// The form "j17a1" of an AttemptId.
struct AttemptIdForm {
  using Value = AttemptId;
  static Json write(const AttemptId& attempt) { return attempt.text(); }
  static Result<void> read_into(const Json& json, AttemptId& attempt) {
    if (!json.is_string()) return invalid("an attempt must be a string");
    attempt = TRY(parse_attempt_id(json.get_ref<const std::string&>()));
    return {};
  }
};
inline constexpr AttemptIdForm kAttemptIdForm;

// The form of a number, for lists of numbers.
template <class Number>
struct NumberForm {
  using Value = Number;
  std::string_view what;  // what the number identifies, for errors: "a job"

  static Json write(Number number) { return number; }
  Result<void> read_into(const Json& json, Number& number) const {
    if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<Number>::max())
      return invalid(std::string(what) + " must be a number");
    number = json.get<Number>();
    return {};
  }
};
inline constexpr NumberForm<JobNumber> kJobNumberForm{"a job"};
inline constexpr NumberForm<HostIndex> kHostIndexForm{"a host"};

}  // namespace trainyard::domain

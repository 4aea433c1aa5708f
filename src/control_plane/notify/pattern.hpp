// A Pattern decides whether a JSON document matches an event pattern of EventBridge or a filter
// policy of SNS; both have the same language.
//
//   {"source": ["aws.batch"], "detail": {"status": ["FAILED", {"prefix": "SUC"}]}}
//
// A document matches if each field of the pattern matches. A field matches if one of its values
// matches. An array in the document matches if one element matches; the fields of one object in the
// pattern must match in the same element. A value is a text, a number, true, false or null, or an
// object with one operator:
//
//   {"prefix": "a"} {"suffix": "a"}    either also {"equals-ignore-case": "a"}
//   {"equals-ignore-case": "a"}
//   {"wildcard": "a*b"}                "*" is any text; "\*" is an asterisk, "\\" a backslash
//   {"anything-but": X}                X: a value, a list of values, or one of {"prefix", "suffix",
//                                      "equals-ignore-case", "wildcard"} with a text or a list
//   {"numeric": [">", 0, "<=", 5]}     "<", "<=", "=", ">=", ">"
//   {"exists": true} {"exists": false} of a field that is not an object
//   {"cidr": "10.0.0.0/8"}             IPv4 and IPv6
//   "$or": [{..}, {..}]                one of the objects matches
//
// As AWS documents, numbers are compared as they are written: 300 does not equal 300.0.
//
// Threads: immutable after compile(). Errors: compile(): invalid, with the name of the field;
// exhausted, beyond a limit. matches(): exhausted, if the comparison needs more than kStepsMax
// steps.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::notify {

class Pattern {
 public:
  static constexpr size_t kValuesMax = 1000;  // values and operators in one pattern
  static constexpr size_t kDepthMax = 50;     // nested objects
  // The comparisons for one document, each of a value or of a byte in a wildcard. They take some
  // milliseconds.
  static constexpr uint64_t kStepsMax = 1'000'000;

  static Result<Pattern> compile(std::string_view text, size_t bytes_max);
  Result<bool> matches(const Json& document) const;

  struct Object;

 private:
  std::shared_ptr<const Object> root_;
};

}  // namespace trainyard::notify

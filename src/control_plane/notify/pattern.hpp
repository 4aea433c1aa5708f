// Pattern decides whether a JSON document matches an event pattern of EventBridge, or a filter
// policy of SNS, which has the same language.
//
//   {"source": ["aws.batch"], "detail": {"status": ["FAILED", {"prefix": "SUC"}]}}
//
// A document matches if each field of the pattern matches, and a field matches if one of its values
// does. An array in the document matches if one element does; fields that the pattern groups in an
// object must match in the same element. A value is a text, a number, true, false or null, or an
// object with one operator:
//
//   {"prefix": "a"} {"suffix": "a"}    either also {"equals-ignore-case": "a"}
//   {"equals-ignore-case": "a"}
//   {"wildcard": "a*b"}                "*" is any text, "\*" and "\\" are themselves
//   {"anything-but": X}                X: a value, a list of values, or one of {"prefix", "suffix",
//                                      "equals-ignore-case", "wildcard"} with a text or a list
//   {"numeric": [">", 0, "<=", 5]}     "<", "<=", "=", ">=", ">"
//   {"exists": true} {"exists": false} of a field that is not an object
//   {"cidr": "10.0.0.0/8"}             IPv4 and IPv6
//   "$or": [{..}, {..}]                one of the objects matches
//
// As documented by AWS, numbers are compared as they are written: 300 does not equal 300.0.
//
// Threads: immutable after compile(). Errors: compile(): invalid, with the place of the fault;
// exhausted, past a limit. matches(): exhausted, if the document would need more than kStepsMax
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
  static constexpr size_t kValuesMax = 1000;  // and operators, of one pattern
  static constexpr size_t kDepthMax = 50;     // of objects
  // Comparisons of one document, each of a byte in a wildcard or of a value: some milliseconds.
  static constexpr uint64_t kStepsMax = 1'000'000;

  static Result<Pattern> compile(std::string_view text, size_t bytes_max);
  Result<bool> matches(const Json& document) const;

  struct Object;

 private:
  std::shared_ptr<const Object> root_;
};

}  // namespace trainyard::notify

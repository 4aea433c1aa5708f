// Checks the constraints of the models: required members, lengths, ranges, patterns, enumerations, unions.
//
// Threads: check() is callable from anywhere. Lifetime: one for the program and each service; patterns are compiled when they
// are first needed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "shapes/shape.hpp"

namespace trainyard::api {

class Constraints {
 public:
  explicit Constraints(const shapes::Service& service);
  ~Constraints();

  // All violations in one message, in the words of AWS: "2 validation errors detected: Value 'x' at 'y'
  // failed to satisfy constraint: ...; Value ...". Nothing when there is none.
  std::optional<std::string> check(const shapes::Shape& shape, const void* structure) const;

  // Every pattern of the shape and of what it holds compiles. For tests.
  bool patterns_compile(const shapes::Shape& shape) const;

 private:
  class Pattern;
  class Check;
  std::unique_ptr<Pattern[]> patterns_;
};

}  // namespace trainyard::api

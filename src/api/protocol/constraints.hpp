// Constraints checks structures against the constraints of a service's model: required members,
// lengths, ranges, patterns, enumerations, unions.
//
// Threads: check() is callable from anywhere. Lifetime: one object per service, for the life of the
// program. Patterns are compiled when they are first needed.
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

  // Returns all violations in one message, as AWS does: "2 validation errors detected: Value 'x' at
  // 'y' failed to satisfy constraint: ...; Value ...". Returns nothing if the structure is valid.
  std::optional<std::string> check(const shapes::Shape& shape, const void* structure) const;

  // Returns whether every pattern of the shape and of its members compiles. For tests.
  bool patterns_compile(const shapes::Shape& shape) const;

 private:
  class Pattern;
  class Check;
  std::unique_ptr<Pattern[]> patterns_;
};

}  // namespace trainyard::api

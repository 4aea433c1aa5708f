// Defines the scalar functions of queries.
//
// Threads: pure. Errors: none; the result for invalid arguments is nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.hpp"
#include "insights/value.hpp"

namespace trainyard::insights {

inline constexpr size_t kTextBytesMax = 1 << 20;  // for a text that a function returns
inline constexpr size_t kArgumentsMax = 64;

// A CallContext contains the values that a call may read in addition to its arguments.
struct CallContext {
  Instant now;    // when the query was started
  double at = 0;  // the time of the event, in milliseconds
};

struct Function {
  std::string_view name;  // in lower case
  size_t arguments_min = 0;
  size_t arguments_max = 0;
  Value (*call)(std::span<const Value> arguments, const CallContext& context) = nullptr;
};

// Finds a function by its name, ignoring case. Returns nullptr for an unknown name.
const Function* find_function(std::string_view name);

}  // namespace trainyard::insights

// Defines the scalar functions of queries.
//
// Threads: pure. Errors: none; a function of what it cannot compute is nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/time.hpp"
#include "insights/value.hpp"

namespace trainyard::insights {

inline constexpr size_t kTextBytesMax = 1 << 20;  // of a text that a function makes
inline constexpr size_t kArgumentsMax = 64;

// A CallContext is what a call reads besides its arguments.
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

// nullptr: there is none of that name; case is ignored.
const Function* find_function(std::string_view name);

}  // namespace trainyard::insights

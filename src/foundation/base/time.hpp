// Defines instants, durations and clocks.
//
// An Instant is milliseconds since 1970 UTC. A class that needs the time takes a Clock in its
// constructor; functions that decide take an Instant as an argument. os::MachineClock is the only
// Clock that reads the machine's clocks.
//
// Threads: values are plain; a Clock is callable from anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

using Duration = std::chrono::milliseconds;
using Instant = std::chrono::sys_time<Duration>;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

class Clock {
 public:
  virtual ~Clock() = default;
  // Returns wall time: for people, for protocols, and for deadlines that outlive the process.
  virtual Instant now() = 0;
  // Returns a time that never goes back: for measurements and waits within one process. Its zero is
  // arbitrary.
  virtual std::chrono::nanoseconds monotonic() = 0;
};

inline int64_t to_milliseconds(Instant instant) { return instant.time_since_epoch().count(); }
inline Instant from_milliseconds(int64_t milliseconds) { return Instant{Duration{milliseconds}}; }
inline double to_seconds(Instant instant) {
  return static_cast<double>(to_milliseconds(instant)) / 1000.0;
}

// Formats "2026-11-20T09:45:00.123Z" (with_milliseconds) or "2026-11-20T09:45:00Z".
std::string to_iso8601(Instant instant, bool with_milliseconds = true);
// Formats "20261120T094500Z", the compact form of SigV4.
std::string to_basic_iso8601(Instant instant);
// Formats "Fri, 20 Nov 2026 09:45:00 GMT", the form of HTTP headers.
std::string to_http_date(Instant instant);
// Parses the extended form with or without fraction and with Z or +hh:mm. Errors: invalid.
Result<Instant> parse_iso8601(std::string_view text);
// Parses YYYYMMDDTHHMMSSZ. Errors: invalid.
Result<Instant> parse_basic_iso8601(std::string_view text);
// Parses the form of to_http_date(). Errors: invalid.
Result<Instant> parse_http_date(std::string_view text);

}  // namespace trainyard

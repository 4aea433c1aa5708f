// Declares the helpers of all protocols: limits, numbers and times as text, and errors for bodies
// that do not match their shape.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Levels of nesting in a request. The deepest shape of the AWS service models in use has nine.
inline constexpr int kDepthMax = 64;
// Values in a request (list elements, members, parameters). A full PutLogEvents has 10,000 events
// with two values each.
inline constexpr size_t kValuesMax = 200'000;

// Returns the shortest text that reads back as the same number; "NaN", "Infinity" and "-Infinity".
std::string double_text(double value);
// Also reads "NaN", "Infinity" and "-Infinity". Errors: invalid.
Result<double> read_double(std::string_view text);

// Formats seconds since 1970 with up to three decimals: "1763632800.123", "1763632800".
std::string epoch_text(Instant instant);
// Errors: invalid, also for times outside the range of Instant.
Result<Instant> instant_of_epoch(double seconds);

std::string timestamp_text(Instant instant, shapes::TimestampFormat format);
Result<Instant> read_timestamp(std::string_view text, shapes::TimestampFormat format);

// Reads a scalar (string, blob, number, boolean, timestamp) from its text form in XML, queries and
// headers into `value`, which points to the C++ value of the shape. Errors: invalid, with a text
// for the client.
Result<void> read_scalar(const shapes::Shape& shape, shapes::TimestampFormat format,
                         std::string_view text, void* value);
std::string scalar_text(const shapes::Shape& shape, shapes::TimestampFormat format,
                        const void* value);

inline bool is_scalar(shapes::ShapeKind kind) { return kind > shapes::ShapeKind::map; }

}  // namespace trainyard::api

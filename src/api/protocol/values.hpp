// Defines what the protocols share: limits, numbers and times as text, and the errors of a body that does not fit its shape.
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

// Nesting of a request: the deepest shape of the models here is nine levels deep.
inline constexpr int kDepthMax = 64;
// Values of one request (list elements, members, parameters): a full PutLogEvents has 10,000 events of two
// each.
inline constexpr size_t kValuesMax = 200'000;

// The shortest text that reads back as the same number. NaN and the infinities as "NaN", "Infinity",
// "-Infinity".
std::string double_text(double value);
// Also those three words. Errors: invalid.
Result<double> read_double(std::string_view text);

// Seconds since 1970 with up to three decimals: "1763632800.123", "1763632800".
std::string epoch_text(Instant instant);
// Errors: invalid, also for times that no Instant holds.
Result<Instant> instant_of_epoch(double seconds);

std::string timestamp_text(Instant instant, shapes::TimestampFormat format);
Result<Instant> read_timestamp(std::string_view text, shapes::TimestampFormat format);

// A scalar (string, blob, number, boolean, timestamp) written as text, as in XML, queries and headers, into
// `value`, which points to the C++ value of the shape. Errors: invalid, in words for the client.
Result<void> read_scalar(const shapes::Shape& shape, shapes::TimestampFormat format, std::string_view text,
                         void* value);
std::string scalar_text(const shapes::Shape& shape, shapes::TimestampFormat format, const void* value);

inline bool is_scalar(shapes::ShapeKind kind) { return kind > shapes::ShapeKind::map; }

}  // namespace trainyard::api

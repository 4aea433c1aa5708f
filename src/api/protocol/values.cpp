#include "protocol/values.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

using shapes::Shape;
using shapes::ShapeKind;
using shapes::TimestampFormat;

// The end of 9999; later dates have no common text form.
constexpr double kEpochSecondsMax = 253402300799.0;

}  // namespace

std::string double_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

Result<double> read_double(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value))
    return invalid("'" + shorten(text, 60) + "' is not a number");
  return value;
}

std::string epoch_text(Instant instant) {
  const int64_t milliseconds = to_milliseconds(instant);
  const int64_t whole = milliseconds / 1000;
  int64_t rest = milliseconds % 1000;
  std::string out;
  if (milliseconds < 0 && whole == 0 && rest != 0) out += '-';
  out += std::to_string(whole);
  if (rest == 0) return out;
  if (rest < 0) rest = -rest;
  char decimals[4] = {char('0' + rest / 100), char('0' + rest / 10 % 10), char('0' + rest % 10), 0};
  out.append(".").append(decimals);
  while (out.back() == '0') out.pop_back();
  return out;
}

Result<Instant> instant_of_epoch(double seconds) {
  if (!(std::fabs(seconds) <= kEpochSecondsMax))
    return invalid("the timestamp is beyond the year 9999");
  return from_milliseconds(std::llround(seconds * 1000.0));
}

std::string timestamp_text(Instant instant, TimestampFormat format) {
  switch (format) {
    case TimestampFormat::http_date:
      return to_http_date(instant);
    case TimestampFormat::epoch_seconds:
      return epoch_text(instant);
    case TimestampFormat::unset:
    case TimestampFormat::iso8601:
      break;
  }
  return to_iso8601(instant, to_milliseconds(instant) % 1000 != 0);
}

Result<Instant> read_timestamp(std::string_view text, TimestampFormat format) {
  if (format == TimestampFormat::http_date) return parse_http_date(text);
  if (format == TimestampFormat::epoch_seconds) return instant_of_epoch(TRY(read_double(text)));
  // botocore writes ISO 8601. Some clients write seconds.
  auto read = parse_iso8601(text);
  if (read) return read;
  if (auto seconds = read_double(text); seconds) return instant_of_epoch(*seconds);
  return read;
}

Result<void> read_scalar(const Shape& shape, TimestampFormat format, std::string_view text,
                         void* value) {
  switch (shape.kind) {
    case ShapeKind::string:
      if (!is_utf8(text)) return invalid("the text is not valid UTF-8");
      *static_cast<std::string*>(value) = text;
      return ok();
    case ShapeKind::blob:
      *static_cast<std::string*>(value) = TRY(from_base64(text));
      return ok();
    case ShapeKind::integer:
      *static_cast<int64_t*>(value) = TRY(parse_int(text));
      return ok();
    case ShapeKind::floating:
      *static_cast<double*>(value) = TRY(read_double(text));
      return ok();
    case ShapeKind::boolean:
      if (!equals_ignoring_case(text, "true") && !equals_ignoring_case(text, "false"))
        return invalid("'" + shorten(text, 60) + "' is neither true nor false");
      *static_cast<bool*>(value) = equals_ignoring_case(text, "true");
      return ok();
    case ShapeKind::timestamp:
      *static_cast<Instant*>(value) = TRY(
          read_timestamp(text, format != TimestampFormat::unset ? format : shape.timestamp_format));
      return ok();
    case ShapeKind::structure:
    case ShapeKind::list:
    case ShapeKind::map:
      break;
  }
  CHECK(false, "read_scalar is called for scalars");
  return ok();
}

std::string scalar_text(const Shape& shape, TimestampFormat format, const void* value) {
  switch (shape.kind) {
    case ShapeKind::string:
      return *static_cast<const std::string*>(value);
    case ShapeKind::blob:
      return to_base64(*static_cast<const std::string*>(value));
    case ShapeKind::integer:
      return std::to_string(*static_cast<const int64_t*>(value));
    case ShapeKind::floating:
      return double_text(*static_cast<const double*>(value));
    case ShapeKind::boolean:
      return *static_cast<const bool*>(value) ? "true" : "false";
    case ShapeKind::timestamp:
      return timestamp_text(*static_cast<const Instant*>(value),
                            format != TimestampFormat::unset ? format : shape.timestamp_format);
    case ShapeKind::structure:
    case ShapeKind::list:
    case ShapeKind::map:
      break;
  }
  CHECK(false, "scalar_text is called for scalars");
  return "";
}

}  // namespace trainyard::api

#include "remote_write/write_request.hpp"

#include <bit>
#include <optional>

#include "base/bytes/varint.hpp"
#include "base/text.hpp"

namespace trainyard::remote_write {
namespace {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_tag(std::string& out, unsigned field, WireType type) {
  append_varint(out, field << 3 | type);
}

void append_bytes(std::string& out, unsigned field, std::string_view bytes) {
  append_tag(out, field, kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

void append_double(std::string& out, unsigned field, double value) {
  append_tag(out, field, kFixed64);
  const auto bits = std::bit_cast<uint64_t>(value);
  for (unsigned shift = 0; shift < 64; shift += 8) out += char(bits >> shift & 0xff);
}

Error malformed() {
  return invalid(
      "malformed WriteRequest: a field is truncated, or its number or wire type is invalid");
}

// A Field is one field of a message: a number or bytes.
struct Field {
  uint64_t number = 0;
  WireType type = kVarint;
  uint64_t value = 0;
  std::string_view bytes;
};

std::optional<uint64_t> take_fixed(std::string_view& message, size_t count) {
  if (message.size() < count) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t(uint8_t(message[i])) << (8 * i);
  message.remove_prefix(count);
  return value;
}

// Removes the next field from the message and returns it; nullopt if it is malformed.
std::optional<Field> take_field(std::string_view& message) {
  const auto tag = take_varint(message);
  if (!tag) return std::nullopt;
  Field field;
  field.number = *tag >> 3;
  field.type = WireType(*tag & 7);
  std::optional<uint64_t> value;
  if (field.type == kVarint || field.type == kBytes) value = take_varint(message);
  if (field.type == kFixed64) value = take_fixed(message, 8);
  if (field.type == kFixed32) value = take_fixed(message, 4);
  if (!value || field.number == 0) return std::nullopt;
  field.value = *value;
  if (field.type != kBytes) return field;
  if (*value > message.size()) return std::nullopt;
  field.bytes = message.substr(0, size_t(*value));
  message.remove_prefix(size_t(*value));
  return field;
}

// Calls `read` with each field of a message. Errors: those of `read`; invalid, if a field is
// malformed.
template <class Read>
Result<void> each_field(std::string_view message, const Read& read) {
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field) return malformed();
    TRY(read(*field));
  }
  return ok();
}

class Decoder {
 public:
  explicit Decoder(const DecodeLimits& limits) : limits_(limits) {}

  Result<std::vector<TimeSeries>> request(std::string_view message) {
    std::vector<TimeSeries> all;
    TRY(each_field(message, [&](const Field& field) -> Result<void> {
      if (field.number != 1 || field.type != kBytes) return ok();
      if (all.size() == limits_.series_max) return too_many("series", limits_.series_max);
      all.push_back(TRY(series(field.bytes)));
      return ok();
    }));
    return all;
  }

 private:
  static Error too_many(const char* what, size_t limit) {
    return exhausted("more than " + std::to_string(limit) + " " + what + " in one request");
  }

  Result<TimeSeries> series(std::string_view message) {
    TimeSeries one;
    TRY(each_field(message, [&](const Field& field) -> Result<void> {
      if (field.type != kBytes) return ok();
      if (field.number == 1) {
        if (one.labels.size() == limits_.labels_max)
          return exhausted("more than " + std::to_string(limits_.labels_max) +
                           " labels in one series");
        one.labels.push_back(TRY(label(field.bytes)));
      }
      if (field.number == 2) {
        if (samples_++ == limits_.samples_max) return too_many("samples", limits_.samples_max);
        one.samples.push_back(TRY(sample(field.bytes)));
      }
      return ok();
    }));
    return one;
  }

  Result<std::pair<std::string, std::string>> label(std::string_view message) const {
    std::pair<std::string, std::string> one;
    TRY(each_field(message, [&](const Field& field) -> Result<void> {
      if (field.type != kBytes || field.number > 2) return ok();
      if (field.bytes.size() > limits_.label_bytes_max)
        return exhausted("the name or value of a label has more than " +
                         std::to_string(limits_.label_bytes_max) + " bytes");
      if (!is_utf8(field.bytes)) return invalid("the name or value of a label is not UTF-8");
      (field.number == 1 ? one.first : one.second) = field.bytes;
      return ok();
    }));
    return one;
  }

  static Result<WriteSample> sample(std::string_view message) {
    WriteSample one;
    TRY(each_field(message, [&](const Field& field) -> Result<void> {
      if (field.number == 1 && field.type == kFixed64)
        one.value = std::bit_cast<double>(field.value);
      if (field.number == 2 && field.type == kVarint) one.milliseconds = int64_t(field.value);
      return ok();
    }));
    return one;
  }

  const DecodeLimits& limits_;
  size_t samples_ = 0;
};

}  // namespace

std::string encode(const std::vector<TimeSeries>& series) {
  std::string out, one, part;
  for (const TimeSeries& each : series) {
    one.clear();
    for (const auto& [name, value] : each.labels) {
      part.clear();
      append_bytes(part, 1, name);
      append_bytes(part, 2, value);
      append_bytes(one, 1, part);
    }
    for (const WriteSample& sample : each.samples) {
      part.clear();
      append_double(part, 1, sample.value);
      append_tag(part, 2, kVarint);
      append_varint(part, uint64_t(sample.milliseconds));
      append_bytes(one, 2, part);
    }
    append_bytes(out, 1, one);
  }
  return out;
}

Result<std::vector<TimeSeries>> decode(std::string_view message, const DecodeLimits& limits) {
  return Decoder(limits).request(message);
}

}  // namespace trainyard::remote_write

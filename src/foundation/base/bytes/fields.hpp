// Encodes and decodes a message from one description: a function that visits its fields with a
// FieldWriter or a FieldReader.
//
//   template <class Side, class M>
//   void fields(Side& side, M& m) {
//     using T = std::remove_const_t<M>;
//     if constexpr (std::is_same_v<T, Hello>) {
//       side("version", m.version);
//       ...
//
// Integers are little-endian; text is a u32 length and its bytes. A variant of messages starts with
// a kind byte: the index in the variant, from 1, so new messages are added at its end.
//
// If the two ends of a protocol may have different versions, use choice_or() instead of choice(),
// added() or added_list() for fields that later versions added, and skip_rest() after the last
// field. A reader then accepts messages of later versions.
//
// Input is untrusted. Truncated or excess bytes, lengths and counts past the end, unknown kinds and
// values are errors (corrupt) that name message and field. A count cannot claim more memory than
// the input justifies.
//
// Threads: each side is confined to one.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard {

class FieldWriter {
 public:
  std::string bytes;

  template <class T>
  void integer(T value) {
    char little[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i)
      little[i] = char(uint8_t(uint64_t(std::make_unsigned_t<T>(value)) >> (8 * i)));
    bytes.append(little, sizeof little);
  }
  void operator()(const char*, uint8_t value) { integer(value); }
  void operator()(const char*, uint32_t value) { integer(value); }
  void operator()(const char*, uint64_t value) { integer(value); }
  void operator()(const char*, int32_t value) { integer(value); }
  void operator()(const char*, bool value) { integer(uint8_t(value)); }
  void operator()(const char*, double value) { integer(std::bit_cast<uint64_t>(value)); }
  void operator()(const char*, Instant value) { integer(to_milliseconds(value)); }
  void operator()(const char*, Duration value) { integer(int64_t(value.count())); }
  void operator()(const char*, const std::string& value) {
    integer(uint32_t(value.size()));
    bytes += value;
  }
  template <class E>
  void choice(const char*, E value, E) {
    integer(uint8_t(value));
  }
  template <class E>
  void choice_or(const char*, E value, E, E) {
    integer(uint8_t(value));
  }
  // Writes a field that a later version added, if `written`: the reader must be able to skip or
  // read it.
  template <class T>
  void added(const char* field, const T& value, bool written) {
    if (written) (*this)(field, value);
  }
  template <class T, class Each>
  void added_list(const char* field, const std::vector<T>& values, size_t element_bytes_min,
                  Each each, bool written) {
    if (written) list(field, values, element_bytes_min, each);
  }
  void skip_rest() {}
  template <class T, class Each>
  void optional(const char*, const std::optional<T>& value, Each each) {
    integer(uint8_t(value.has_value()));
    if (value) each(*value);
  }
  template <class T, class Each>
  void list(const char*, const std::vector<T>& values, size_t, Each each) {
    integer(uint32_t(values.size()));
    for (const T& value : values) each(value);
  }
};

// Reads fields. After the first fault every field reads as zero or empty, and finish() returns that
// fault.
class FieldReader {
 public:
  FieldReader(std::string_view payload, std::string_view message)
      : rest_(payload), message_(message) {}

  void operator()(const char* field, uint8_t& value) { value = integer<uint8_t>(field); }
  void operator()(const char* field, uint32_t& value) { value = integer<uint32_t>(field); }
  void operator()(const char* field, uint64_t& value) { value = integer<uint64_t>(field); }
  void operator()(const char* field, int32_t& value) { value = integer<int32_t>(field); }
  void operator()(const char* field, bool& value) {
    const uint8_t byte = integer<uint8_t>(field);
    if (byte > 1) fault(field, "is neither 0 nor 1");
    value = byte == 1;
  }
  void operator()(const char* field, double& value) {
    value = std::bit_cast<double>(integer<uint64_t>(field));
  }
  void operator()(const char* field, Instant& value) {
    value = from_milliseconds(integer<int64_t>(field));
  }
  void operator()(const char* field, Duration& value) { value = Duration{integer<int64_t>(field)}; }
  void operator()(const char* field, std::string& value) {
    const size_t size = integer<uint32_t>(field);
    if (size > rest_.size()) return fault(field, "is cut short");
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  template <class E>
  void choice(const char* field, E& value, E last) {
    const uint8_t byte = integer<uint8_t>(field);
    if (byte > uint8_t(last)) return fault(field, "has no value " + std::to_string(byte));
    value = E(byte);
  }
  // Reads a value above `last`, which a later version added, as `other`.
  template <class E>
  void choice_or(const char* field, E& value, E last, E other) {
    const uint8_t byte = integer<uint8_t>(field);
    value = byte > uint8_t(last) ? other : E(byte);
  }
  // Reads a field that a later version added. Keeps the value if the message ends before the field.
  template <class T>
  void added(const char* field, T& value, bool) {
    if (!rest_.empty()) (*this)(field, value);
  }
  template <class T, class Each>
  void added_list(const char* field, std::vector<T>& values, size_t element_bytes_min, Each each,
                  bool) {
    if (!rest_.empty()) list(field, values, element_bytes_min, each);
  }
  // Skips the fields that a later version added after the last one.
  void skip_rest() { rest_ = {}; }
  template <class T, class Each>
  void optional(const char* field, std::optional<T>& value, Each each) {
    bool present = false;
    (*this)(field, present);
    if (present) each(value.emplace());
  }
  // element_bytes_min limits the memory that a false count can claim.
  template <class T, class Each>
  void list(const char* field, std::vector<T>& values, size_t element_bytes_min, Each each) {
    const size_t count = integer<uint32_t>(field);
    if (count > rest_.size() / element_bytes_min) return fault(field, "is cut short");
    values.resize(count);
    for (T& value : values) each(value);
  }

  // Records a fault that the caller found in a field.
  void refuse(const char* field, const std::string& what) { fault(field, what); }

  Result<void> finish() {
    if (error_.empty() && !rest_.empty())
      error_ = std::string(message_) + " has " + std::to_string(rest_.size()) + " bytes too many";
    if (!error_.empty()) return corrupt(error_);
    return {};
  }

 private:
  template <class T>
  T integer(const char* field) {
    if (rest_.size() < sizeof(T)) {
      fault(field, "is cut short");
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t(uint8_t(rest_[i])) << (8 * i);
    rest_.remove_prefix(sizeof(T));
    return T(value);
  }
  void fault(const char* field, const std::string& what) {
    rest_ = {};
    if (error_.empty()) error_ = std::string(message_) + "." + field + " " + what;
  }

  std::string_view rest_;
  std::string_view message_;
  std::string error_;
};

// Encodes a variant of messages. `describe(side, message)` describes any alternative of it.
template <class Message, class Describe>
std::string encode_kind(const Message& message, const Describe& describe) {
  FieldWriter writer;
  writer.integer(uint8_t(message.index() + 1));
  std::visit([&](const auto& each) { describe(writer, each); }, message);
  return std::move(writer.bytes);
}

// Decodes a variant of messages. names[i] is the name of alternative i in errors.
template <class Message, size_t index = 0, class Describe>
Result<Message> decode_kind(std::string_view payload, const char* const* names,
                            const Describe& describe) {
  if (payload.empty()) return corrupt("a frame without a message kind");
  if constexpr (index < std::variant_size_v<Message>) {
    if (uint8_t(payload[0]) != index + 1)
      return decode_kind<Message, index + 1>(payload, names, describe);
    std::variant_alternative_t<index, Message> message;
    FieldReader reader(payload.substr(1), names[index]);
    describe(reader, message);
    TRY(reader.finish());
    return Message(std::move(message));
  } else {
    return corrupt("unknown message kind " + std::to_string(uint8_t(payload[0])));
  }
}

}  // namespace trainyard

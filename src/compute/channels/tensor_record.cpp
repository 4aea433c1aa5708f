#include "channels/tensor_record.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/bytes/little_endian.hpp"
#include "base/bytes/varint.hpp"

namespace trainyard::channels {
namespace {

constexpr std::string_view kValues = "values";

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  uint64_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;     // set for number fields
  std::string_view text;  // set for fields of bytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view rest) : rest_(rest) {}
  bool at_end() const { return rest_.empty(); }

  Result<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return corrupt("a protobuf message ends within a number");
      const auto byte = uint8_t(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return corrupt("a number of a protobuf message is too long");
  }
  Result<uint64_t> fixed(size_t bytes) {
    if (rest_.size() < bytes) return corrupt("a protobuf message ends within a number");
    const uint64_t value = little_endian(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return value;
  }
  Result<Field> next() {
    const uint64_t tag = TRY(varint());
    Field field{tag >> 3, WireType(tag & 7), 0, {}};
    if (field.number == 0) return corrupt("a protobuf field has the number 0");
    switch (field.type) {
      case WireType::varint:
        field.value = TRY(varint());
        return field;
      case WireType::fixed64:
        field.value = TRY(fixed(8));
        return field;
      case WireType::fixed32:
        field.value = TRY(fixed(4));
        return field;
      case WireType::bytes: {
        const uint64_t length = TRY(varint());
        if (length > rest_.size()) return corrupt("a protobuf field is longer than its message");
        field.text = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return field;
      }
    }
    return corrupt("a protobuf field has an unknown type");
  }

 private:
  std::string_view rest_;
};

enum class NumberType : uint8_t { f32 = 2, f64 = 3, i32 = 7 };  // the field of Value

Result<double> read_number(WireReader& reader, NumberType type) {
  if (type == NumberType::f32) return double(std::bit_cast<float>(uint32_t(TRY(reader.fixed(4)))));
  if (type == NumberType::f64) return std::bit_cast<double>(TRY(reader.fixed(8)));
  return double(int32_t(TRY(reader.varint())));
}

double to_number(const Field& field, NumberType type) {
  if (type == NumberType::f32) return double(std::bit_cast<float>(uint32_t(field.value)));
  if (type == NumberType::f64) return std::bit_cast<double>(field.value);
  return double(int32_t(field.value));
}

WireType type_of(NumberType type) {
  return type == NumberType::f32   ? WireType::fixed32
         : type == NumberType::f64 ? WireType::fixed64
                                   : WireType::varint;
}

Result<void> read_integers(const Field& field, std::vector<uint64_t>& all) {
  if (field.type == WireType::varint) {
    all.push_back(field.value);
    return ok();
  }
  if (field.type != WireType::bytes)
    return corrupt("the keys or the shape of a tensor are not integers");
  for (WireReader packed(field.text); !packed.at_end();) all.push_back(TRY(packed.varint()));
  return ok();
}

Result<Tensor> read_tensor(std::string_view message, NumberType type) {
  Tensor tensor;
  for (WireReader reader(message); !reader.at_end();) {
    const Field field = TRY(reader.next());
    if (field.number == 1 && field.type == WireType::bytes) {
      for (WireReader packed(field.text); !packed.at_end();)
        tensor.values.push_back(TRY(read_number(packed, type)));
    } else if (field.number == 1 && field.type == type_of(type)) {
      tensor.values.push_back(to_number(field, type));
    } else if (field.number == 1) {
      return corrupt("the values of a tensor have a different type from the tensor");
    } else if (field.number == 2 || field.number == 3) {
      TRY(read_integers(field, field.number == 2 ? tensor.keys : tensor.shape));
    }
  }
  return tensor;
}

Result<Tensor> read_value(std::string_view message) {
  Result<Tensor> found = invalid("the value has no tensor of numbers");
  for (WireReader reader(message); !reader.at_end();) {
    const Field field = TRY(reader.next());
    if (field.type != WireType::bytes) continue;
    if (field.number == 2 || field.number == 3 || field.number == 7)
      found = TRY(read_tensor(field.text, NumberType(field.number)));
  }
  return found;
}

// Reads an entry of map<string, Value>. Returns nothing if its key is not `wanted`.
Result<std::optional<Tensor>> read_entry(std::string_view message, std::string_view wanted) {
  std::string_view key, value;
  for (WireReader reader(message); !reader.at_end();) {
    const Field field = TRY(reader.next());
    if (field.type != WireType::bytes) continue;
    if (field.number == 1) key = field.text;
    if (field.number == 2) value = field.text;
  }
  if (key != wanted) return std::optional<Tensor>();
  return std::optional(TRY(read_value(value)));
}

std::string numbers(size_t found, size_t dimensions) {
  return "a record has " + std::to_string(found) + " features, but feature_dim is " +
         std::to_string(dimensions);
}

Result<void> spread(const Tensor& tensor, size_t dimensions, std::vector<float>& features) {
  if (tensor.keys.empty()) {
    if (tensor.values.size() != dimensions)
      return invalid(numbers(tensor.values.size(), dimensions));
    features.assign(tensor.values.begin(), tensor.values.end());
  } else {
    if (tensor.keys.size() != tensor.values.size())
      return invalid("a sparse record has " + std::to_string(tensor.keys.size()) + " keys and " +
                     std::to_string(tensor.values.size()) + " values");
    if (!tensor.shape.empty() && tensor.shape.back() != dimensions)
      return invalid(numbers(tensor.shape.back(), dimensions));
    features.assign(dimensions, 0);
    for (size_t i = 0; i < tensor.keys.size(); ++i) {
      if (tensor.keys[i] >= dimensions)
        return invalid("a sparse record has the key " + std::to_string(tensor.keys[i]) +
                       ", but feature_dim is " + std::to_string(dimensions));
      features[tensor.keys[i]] = float(tensor.values[i]);
    }
  }
  for (size_t i = 0; i < dimensions; ++i)
    if (!std::isfinite(features[i]))
      return invalid("feature " + std::to_string(i) + " of a record is not a finite number");
  return ok();
}

void append_bytes(std::string& message, uint64_t number, std::string_view text) {
  append_varint(message, number << 3 | uint64_t(WireType::bytes));
  append_varint(message, text.size());
  message += text;
}

// Encodes an entry of map<string, Value> with a Float32Tensor.
std::string entry_of(std::string_view name, std::span<const float> values) {
  std::string packed, tensor, value, entry;
  for (const float each : values) append_little_endian(packed, std::bit_cast<uint32_t>(each), 4);
  append_bytes(tensor, 1, packed);
  append_bytes(value, uint64_t(NumberType::f32), tensor);
  append_bytes(entry, 1, name);
  append_bytes(entry, 2, value);
  return entry;
}

}  // namespace

Result<RawRecord> decode_raw_record(std::string_view message) {
  RawRecord record;
  bool has_features = false;
  for (WireReader reader(message); !reader.at_end();) {
    const Field field = TRY(reader.next());
    if (field.type != WireType::bytes || field.number > 2) continue;
    auto tensor = TRY(read_entry(field.text, kValues));
    if (!tensor) continue;
    if (field.number == 1) {
      record.features = std::move(*tensor);
      has_features = true;
    } else if (!tensor->values.empty()) {
      record.label = tensor->values.front();
    }
  }
  if (!has_features) return invalid("a record has no features named 'values'");
  return record;
}

Result<void> decode_record(std::string_view message, size_t dimensions, TensorRecord& record) {
  const RawRecord raw = TRY(decode_raw_record(message));
  record.label = raw.label;
  return spread(raw.features, dimensions, record.features);
}

std::string encode_label(std::string_view name, float value) {
  std::string message;
  append_bytes(message, 2, entry_of(name, {&value, 1}));
  return message;
}

std::string encode_record(const TensorRecord& record) {
  std::string message;
  append_bytes(message, 1, entry_of(kValues, record.features));
  if (record.label) {
    const auto label = float(*record.label);
    append_bytes(message, 2, entry_of(kValues, {&label, 1}));
  }
  return message;
}

}  // namespace trainyard::channels

#include "local_sgd/coding.hpp"

#include <bit>
#include <cstring>

#include "base/enum_table.hpp"
#include "collectives/reduce/reduce.hpp"
#include "gradients/compress/int8.hpp"

namespace trainyard::local_sgd {

static_assert(std::endian::native == std::endian::little,
              "numbers are sent in memory order, which must be little-endian");

namespace {

constexpr EnumTable<Coding> kCodings{
    "coding",
    {{Coding::f32, "f32"}, {Coding::f16, "f16"}, {Coding::bf16, "bf16"}, {Coding::int8, "int8"}}};

// Requires: not int8, which is not an element type.
collectives::Type type_of(Coding coding) {
  constexpr collectives::Type types[] = {collectives::Type::f32, collectives::Type::f16,
                                         collectives::Type::bf16};
  return types[size_t(coding)];
}

}  // namespace

std::string_view to_string(Coding coding) { return kCodings.text(coding); }

Result<Coding> parse_coding(std::string_view name) {
  if (const auto coding = kCodings.find(name)) return *coding;
  return invalid("unknown coding '" + std::string(name) + "': use f32, f16, bf16 or int8");
}

size_t coded_bytes(Coding coding, size_t numbers) {
  if (coding == Coding::int8) return gradients::int8_bytes(numbers);
  return numbers * collectives::bytes_of(type_of(coding));
}

std::string encode(Coding coding, std::span<const float> values) {
  std::string bytes(coded_bytes(coding, values.size()), '\0');
  if (coding == Coding::f32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (coding == Coding::int8) {
    // to_int8 overwrites its input with the rounding errors, which Replica computes itself.
    std::vector<float> rest(values.begin(), values.end());
    gradients::to_int8(rest.data(), rest.size(), reinterpret_cast<std::byte*>(bytes.data()));
    return bytes;
  }
  collectives::narrow(type_of(coding), values.data(), reinterpret_cast<std::byte*>(bytes.data()),
                      values.size());
  return bytes;
}

Result<std::vector<float>> decode(Coding coding, std::string_view bytes, size_t numbers) {
  if (bytes.size() != coded_bytes(coding, numbers)) {
    return corrupt("a gradient of " + std::to_string(numbers) + " numbers as " +
                   std::string(to_string(coding)) + " has " + std::to_string(bytes.size()) +
                   " bytes instead of " + std::to_string(coded_bytes(coding, numbers)));
  }
  std::vector<float> values(numbers);
  if (coding == Coding::f32) {
    if (numbers > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  if (coding == Coding::int8) {
    gradients::from_int8(reinterpret_cast<const std::byte*>(bytes.data()), numbers, values.data());
    return values;
  }
  collectives::widen(type_of(coding), reinterpret_cast<const std::byte*>(bytes.data()),
                     values.data(), numbers);
  return values;
}

}  // namespace trainyard::local_sgd

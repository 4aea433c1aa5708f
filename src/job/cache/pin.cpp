#include "cache/pin.hpp"

#include <algorithm>

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"

namespace trainyard::cache {
namespace {

constexpr std::string_view kPinMagic = "TYPINS01";
constexpr size_t kPinSumAt = 8, kPinNameSizeAt = 12, kPinNameAt = 16;
constexpr size_t kHashBytes = sizeof(Digest), kEntryBytes = kHashBytes + 4;

}  // namespace

std::string encode_pin(const Pin& pin) {
  CHECK(pin.name.size() <= kPinNameBytesMax && pin.blocks.size() <= kPinBlocksMax,
        "a pin is within its limits");
  std::string rest;
  rest.reserve(4 + pin.name.size() + pin.blocks.size() * kEntryBytes);
  append_little_endian(rest, pin.name.size(), 4);
  rest += pin.name;
  for (const auto& block : pin.blocks) {
    rest.append(block.hash.begin(), block.hash.end());
    append_little_endian(rest, block.bytes, 4);
  }
  std::string file(kPinMagic);
  append_little_endian(file, Crc32c::of(rest), 4);
  return file + rest;
}

Result<Pin> decode_pin(std::string_view file) {
  if (!file.starts_with(kPinMagic) || file.size() < kPinNameAt)
    return corrupt("not a pin: it does not begin with TYPINS01");
  if (Crc32c::of(file.substr(kPinNameSizeAt)) != little_endian_u32(file.substr(kPinSumAt)))
    return corrupt("the pin does not match its checksum");
  const uint32_t name_bytes = little_endian_u32(file.substr(kPinNameSizeAt));
  std::string_view rest = file.substr(kPinNameAt);
  if (name_bytes > kPinNameBytesMax || name_bytes > rest.size())
    return corrupt("the pin has an invalid name length: " + std::to_string(name_bytes));
  Pin pin{std::string(rest.substr(0, name_bytes)), {}};
  rest.remove_prefix(name_bytes);
  if (rest.size() % kEntryBytes != 0 || rest.size() / kEntryBytes > kPinBlocksMax)
    return corrupt("the pin has a truncated or too long list of blocks");
  pin.blocks.reserve(rest.size() / kEntryBytes);
  for (; !rest.empty(); rest.remove_prefix(kEntryBytes)) {
    PinnedBlock block;
    std::copy_n(rest.begin(), kHashBytes, block.hash.begin());
    block.bytes = little_endian_u32(rest.substr(kHashBytes));
    if (!pin.blocks.empty() && !(pin.blocks.back() < block))
      return corrupt("the pin's blocks are not in ascending order");
    pin.blocks.push_back(block);
  }
  return pin;
}

}  // namespace trainyard::cache

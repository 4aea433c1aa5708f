#include "cache/block.hpp"

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::cache {
namespace {

constexpr std::string_view kMagic = "TYBLOCK1";
constexpr size_t kSumAt = 8, kIdentitySizeAt = 12, kIdentityAt = 16;

}  // namespace

std::string identity_of(const BlockId& id) {
  std::string text;
  for (const auto* part : {&id.endpoint, &id.bucket, &id.key, &id.etag})
    text += std::to_string(part->size()) + ":" + *part;
  return text + std::to_string(id.number);
}

std::string path_of(const BlockId& id) {
  const std::string name = to_hex(bytes_of(sha256(identity_of(id))));
  return name.substr(0, 2) + "/" + name;
}

std::string encode_block(const BlockId& id, std::string_view content) {
  const std::string identity = identity_of(id);
  std::string rest;
  rest.reserve(4 + identity.size() + content.size());
  append_little_endian(rest, identity.size(), 4);
  rest += identity;
  rest += content;
  std::string file(kMagic);
  file.reserve(kSumAt + 4 + rest.size());
  append_little_endian(file, Crc32c::of(rest), 4);
  return file + rest;
}

Result<std::string_view> decode_block(const BlockId& id, std::string_view file) {
  if (!file.starts_with(kMagic) || file.size() < kIdentityAt)
    return corrupt("a cached block is not one");
  if (Crc32c::of(file.substr(kIdentitySizeAt)) != little_endian_u32(file.substr(kSumAt)))
    return corrupt("a cached block does not match its checksum");
  const uint32_t identity_bytes = little_endian_u32(file.substr(kIdentitySizeAt));
  const std::string_view rest = file.substr(kIdentityAt);
  if (identity_bytes > rest.size() || rest.substr(0, identity_bytes) != identity_of(id))
    return corrupt("a cached block is of another object");
  return rest.substr(identity_bytes);
}

}  // namespace trainyard::cache

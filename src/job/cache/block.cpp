#include "cache/block.hpp"

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/text.hpp"

namespace trainyard::cache {
namespace {

constexpr std::string_view kMagic = "TYBLOCK1";
constexpr const char* kNotABlock = "not a cached block: it does not begin with TYBLOCK1";
constexpr size_t kSumAt = 8, kIdentitySizeAt = 12, kIdentityAt = 16;

}  // namespace

std::string identity_of(const BlockId& id) {
  std::string text;
  for (const auto* part : {&id.endpoint, &id.bucket, &id.key, &id.etag})
    text += std::to_string(part->size()) + ":" + *part;
  return text + std::to_string(id.number);
}

Result<BlockId> parse_identity(std::string_view text) {
  const std::string_view whole = text;
  BlockId id;
  for (auto* part : {&id.endpoint, &id.bucket, &id.key, &id.etag}) {
    const size_t colon = text.find(':');
    if (colon == text.npos) return corrupt("a cached block has a truncated identity");
    const auto bytes = TRY(parse_int(text.substr(0, colon)));
    text.remove_prefix(colon + 1);
    if (bytes < 0 || uint64_t(bytes) > text.size())
      return corrupt("a cached block has a truncated identity");
    *part = text.substr(0, size_t(bytes));
    text.remove_prefix(size_t(bytes));
  }
  const auto number = TRY(parse_int(text));
  if (number < 0) return corrupt("a cached block has the number " + std::to_string(number));
  id.number = uint64_t(number);
  if (identity_of(id) != whole) return corrupt("a cached block has a non-canonical identity");
  return id;
}

Digest hash_of(const BlockId& id) { return sha256(identity_of(id)); }

std::string path_of(const Digest& hash) {
  const std::string name = to_hex(bytes_of(hash));
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
  if (!file.starts_with(kMagic) || file.size() < kIdentityAt) return corrupt(kNotABlock);
  if (Crc32c::of(file.substr(kIdentitySizeAt)) != little_endian_u32(file.substr(kSumAt)))
    return corrupt("a cached block does not match its checksum");
  const uint32_t identity_bytes = little_endian_u32(file.substr(kIdentitySizeAt));
  const std::string_view rest = file.substr(kIdentityAt);
  if (identity_bytes > rest.size() || rest.substr(0, identity_bytes) != identity_of(id))
    return corrupt("a cached block belongs to another object");
  return rest.substr(identity_bytes);
}

Result<BlockId> declared_id(std::string_view start_of_file) {
  if (!start_of_file.starts_with(kMagic) || start_of_file.size() < kIdentityAt)
    return corrupt(kNotABlock);
  const uint32_t bytes = little_endian_u32(start_of_file.substr(kIdentitySizeAt));
  const std::string_view rest = start_of_file.substr(kIdentityAt);
  if (bytes > rest.size()) return corrupt("a cached block is truncated");
  return parse_identity(rest.substr(0, bytes));
}

uint64_t file_bytes_of(const BlockId& id, uint64_t content_bytes) {
  return kIdentityAt + identity_of(id).size() + content_bytes;
}

}  // namespace trainyard::cache

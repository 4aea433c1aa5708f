#include "objects/directory/part_list.hpp"

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "objects/checksum.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kMd5Bytes = 16;
constexpr size_t kEntryBytes = 4 + 8 + kMd5Bytes;
constexpr size_t kSumBytes = 4;

}  // namespace

uint64_t part_list_bytes(uint32_t parts) { return uint64_t(parts) * kEntryBytes + kSumBytes; }

std::string encode_part_list(const std::vector<PartEntry>& parts) {
  std::string list;
  for (const auto& part : parts) {
    const auto md5 = from_hex(part.etag);
    CHECK(md5 && md5->size() == kMd5Bytes, "the ETag of a part is an MD5");
    append_little_endian(list, part.number, 4);
    append_little_endian(list, part.bytes, 8);
    list += *md5;
  }
  const std::string sum = checksum_of("crc32c", list);
  return list.append(sum.rbegin(), sum.rend());
}

Result<std::vector<PartEntry>> decode_part_list(std::string_view list, uint64_t bytes) {
  if (list.size() < kSumBytes || (list.size() - kSumBytes) % kEntryBytes != 0)
    return corrupt("the length of its list of parts is wrong");
  const std::string_view entries = list.substr(0, list.size() - kSumBytes);
  const std::string sum = checksum_of("crc32c", entries);
  if (!std::equal(sum.rbegin(), sum.rend(), list.end() - kSumBytes))
    return corrupt("its list of parts fails its checksum");
  std::vector<PartEntry> parts;
  uint64_t total = 0;
  for (size_t at = 0; at < entries.size(); at += kEntryBytes) {
    const PartEntry part{uint32_t(little_endian(entries.substr(at, 4))),
                         little_endian(entries.substr(at + 4, 8)),
                         to_hex(entries.substr(at + 12, kMd5Bytes))};
    const uint32_t last = parts.empty() ? 0 : parts.back().number;
    if (part.number <= last || part.number > kPartsMax || part.bytes > kPartEntryBytesMax)
      return corrupt("its list of parts is out of order");
    total += part.bytes;
    parts.push_back(part);
  }
  if (total != bytes)
    return corrupt("the sum of the lengths of its parts is not the length of the object");
  return parts;
}

}  // namespace trainyard::objects

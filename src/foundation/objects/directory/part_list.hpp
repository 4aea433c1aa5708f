// Encodes and decodes the body of an object that was uploaded in parts: the list of the files of
// its upload, in order. Grammar: docs/formats/objects.md.
//
// Threads: pure. Errors: corrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::objects {

struct PartEntry {
  uint32_t number = 0;
  uint64_t bytes = 0;
  std::string etag;  // hex MD5
};

// Limit of one part: more than S3's 5 GiB, and so small that the sum of 10,000 parts fits in 64
// bits.
inline constexpr uint64_t kPartEntryBytesMax = uint64_t(1) << 48;

// Returns the number of bytes of a list of `parts` parts.
uint64_t part_list_bytes(uint32_t parts);
// Requires: the ETags have 32 hex digits.
std::string encode_part_list(const std::vector<PartEntry>& parts);
// Ensures: the part numbers increase and are within 1 .. kPartsMax; the parts have `bytes` bytes in
// total.
Result<std::vector<PartEntry>> decode_part_list(std::string_view list, uint64_t bytes);

}  // namespace trainyard::objects

// Encodes and decodes the body of an object that is a list of parts: which files of its upload it consists of, in order.
// Grammar: docs/formats/objects.md.
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

// Of one part: more than S3 takes (5 GiB), and so little that 10,000 of them are summed in 64 bits.
inline constexpr uint64_t kPartEntryBytesMax = uint64_t(1) << 48;

// How long the list of so many parts is.
uint64_t part_list_bytes(uint32_t parts);
// Requires: the ETags are of 32 hex digits.
std::string encode_part_list(const std::vector<PartEntry>& parts);
// Ensures: the numbers rise and lie within 1 .. kPartsMax; the bytes sum up to `bytes`.
Result<std::vector<PartEntry>> decode_part_list(std::string_view list, uint64_t bytes);

}  // namespace trainyard::objects

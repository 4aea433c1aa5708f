// Encodes and decodes the marks of a listing: keys at equal distances, between which the next
// listing of the same prefix requests several ranges at once (listing.hpp).
//
// A file of marks is a JSON array of keys in hexadecimal digits.
//
// Threads: pure. Errors: corrupt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::agent {

// The limit of ranges at once: as many requests as a store serves for one client without
// throttling.
inline constexpr size_t kListedRangesMax = 16;
inline constexpr size_t kMarkBytesMax = 1024;  // S3's limit
inline constexpr size_t kMarksFileBytesMax = kListedRangesMax * (2 * kMarkBytesMax + 8);

std::string encode_marks(const std::vector<std::string>& marks);
// Errors: corrupt: not a file of marks, too many or too long keys, or keys out of order.
Result<std::vector<std::string>> decode_marks(std::string_view text);

}  // namespace trainyard::agent

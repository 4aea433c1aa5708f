// Encodes and decodes blocks of points. A block contains samples of one metric in the order of
// time.
//
// Times are differences of differences, and values are differences of their bits from a prediction,
// in windows between leading and trailing zeros, after Gorilla (Pelkonen et al., "Gorilla: A Fast,
// Scalable, In-Memory Time Series Database", VLDB 2015). The prediction is the previous value, or
// the line through the two previous values if that makes the block smaller. A sample of a single
// value is stored as one value. Layout: docs/formats/metrics.md.
//
// Threads: pure functions. Errors: corrupt, with a description. Input is untrusted: decoding
// allocates at most kPointBlockPointsMax samples, and reads nothing outside the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/metrics.hpp"

namespace trainyard::observe {

inline constexpr size_t kPointBlockPointsMax = 512;
// Rows of this length are not split by SQLite, and four of them fill a page of 4 KiB.
inline constexpr size_t kPointBlockBytesMax = 960;
inline constexpr size_t kPointBlockUnitsMax = 255;

struct EncodedPoints {
  std::string bytes;
  size_t count = 0;  // the number of encoded samples
};
// Encodes the longest prefix of `samples` within kPointBlockPointsMax and `bytes_max`, but at least
// one sample. Requires: samples are not empty, in the order of time, and have units of at most
// kUnitBytesMax.
EncodedPoints encode_point_block(std::span<const Sample> samples,
                                 size_t bytes_max = kPointBlockBytesMax);

Result<std::vector<Sample>> decode_point_block(std::string_view bytes);

// Returns whether the sample is a single value: count 1, sum = minimum = maximum.
bool is_plain(const Sample& sample);

}  // namespace trainyard::observe

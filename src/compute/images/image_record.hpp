// Decodes one record of a RecordIO file of images, in the format of MXNet's im2rec:
//
//   flag:u32 label:f32 id:u64 id2:u64 *(label:f32) image      little-endian
//
// flag is the number of labels after the header; 0: the header's own label is the only one.
//
// Threads: pure functions. Errors: corrupt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::images {

inline constexpr size_t kImageRecordHeadBytes = 24;
inline constexpr uint32_t kLabelsMax = 1 << 16;  // labels of one image

struct ImageRecord {
  std::vector<float> labels;
  std::string_view image;  // encoded; a part of the record
};

Result<ImageRecord> decode_image_record(std::string_view record);

}  // namespace trainyard::images

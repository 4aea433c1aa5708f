#include "images/image_record.hpp"

#include <bit>
#include <string>

#include "base/bytes/little_endian.hpp"

namespace trainyard::images {

Result<ImageRecord> decode_image_record(std::string_view record) {
  if (record.size() < kImageRecordHeadBytes)
    return corrupt("a record of " + std::to_string(record.size()) +
                   " bytes is shorter than the header of an image");
  const auto number = [&](size_t at) {
    return std::bit_cast<float>(little_endian_u32(record.substr(at)));
  };
  const uint32_t flag = little_endian_u32(record);
  const size_t left = record.size() - kImageRecordHeadBytes;
  if (flag > kLabelsMax || flag * sizeof(float) > left)
    return corrupt("a record of " + std::to_string(record.size()) + " bytes cannot contain " +
                   std::to_string(flag) + " labels");
  ImageRecord decoded;
  if (flag == 0) decoded.labels = {number(4)};
  for (size_t i = 0; i < flag; ++i)
    decoded.labels.push_back(number(kImageRecordHeadBytes + i * sizeof(float)));
  decoded.image = record.substr(kImageRecordHeadBytes + flag * sizeof(float));
  return decoded;
}

}  // namespace trainyard::images

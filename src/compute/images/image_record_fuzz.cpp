// Decodes any bytes as a record of an image. The labels and the image are within the record.
// decoder: src/compute/images/image_record.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "images/image_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  const auto decoded = images::decode_image_record(record);
  if (!decoded) return 0;
  CHECK(!decoded->labels.empty(), "an image has a label");
  CHECK(decoded->image.size() + images::kImageRecordHeadBytes <= size,
        "the image is a part of the record");
  CHECK(decoded->image.empty() || decoded->image.end() == record.end(),
        "the image is the end of the record");
  return 0;
}

// Decodes any bytes as an image: grey or coloured by the first byte, at full size or scaled by the
// second.
// decoder: src/compute/images/decode.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "images/decode.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  if (size < 2) return 0;
  const int channels = data[0] % 2 == 0 ? 1 : 3;
  const auto image =
      images::decode_image({reinterpret_cast<const char*>(data) + 2, size - 2}, channels, data[1]);
  if (!image) return 0;
  CHECK(image->channels == channels && image->width > 0 && image->height > 0,
        "an image has the requested colours");
  CHECK(image->pixels.size() == image->row_bytes() * size_t(image->height),
        "an image has all of its pixels");
  return 0;
}

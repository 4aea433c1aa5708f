// Decodes JPEG and PNG images.
//
// The header of an image is compared with the limits before memory is allocated for its pixels. An
// image whose data ends early is an error, although libjpeg would fill the rest with grey.
//
// Threads: pure functions. Errors: corrupt, for bytes that are not a whole image of a known format;
// exhausted, for an image beyond the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::images {

// An Image is decoded pixels: rows from the top, pixels from the left, the channels of a pixel next
// to each other.
struct Image {
  int width = 0, height = 0;  // pixels
  int channels = 0;           // 1: grey, 3: red, green, blue
  std::vector<uint8_t> pixels;

  size_t row_bytes() const { return size_t(width) * size_t(channels); }
  const uint8_t* at(int x, int y) const {
    return pixels.data() + size_t(y) * row_bytes() + size_t(x) * size_t(channels);
  }
};

inline constexpr int64_t kImagePixelsMax = 1 << 26;  // 8192 x 8192: 192 MiB of colours
inline constexpr size_t kImageBytesMax = 64 << 20;   // size of an encoded image
inline constexpr int kJpegScansMax = 500;            // each costs time for all pixels

// Decodes a JPEG or PNG image. `channels` is 1 or 3: colours are converted, and transparent pixels
// are blended with black. `shortest_side`: a JPEG may be decoded at a half, a quarter or an eighth
// of its size, in a fraction of the time, as long as its shortest side has at least this number of
// pixels. 0: full size.
Result<Image> decode_image(std::string_view bytes, int channels, int shortest_side = 0);

}  // namespace trainyard::images

// Defines the size of the images that a network reads.
//
// Threads: plain values; pure functions. Errors: invalid, quoting the text.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::algorithms {

inline constexpr int kImageSideMax = 4096;  // pixels

struct ImageShape {
  int channels = 3;  // 1 or 3
  int height = 224, width = 224;

  bool operator==(const ImageShape&) const = default;
};

// Parses "3,224,224": channels, height, width.
Result<ImageShape> parse_image_shape(std::string_view text);
std::string to_string(const ImageShape& shape);

}  // namespace trainyard::algorithms

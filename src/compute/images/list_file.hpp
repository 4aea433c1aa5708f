// Parses .lst files. Each line describes an image: its number, its label or labels, and its path,
// separated by tabs.
//
//   5<TAB>1<TAB>your_image_directory/train_img_dog1.jpg
//
// Threads: pure functions. Errors: invalid, naming line and field; exhausted, beyond the limits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::images {

inline constexpr size_t kListBytesMax = size_t{1} << 30;  // about ten million images
inline constexpr size_t kPathBytesMax = 1024;             // the limit of S3's keys

struct ListedImage {
  std::vector<float> labels;
  std::string path;  // relative, beneath the channel's folder: no "..", no leading slash
};

Result<std::vector<ListedImage>> parse_list(std::string_view text);

}  // namespace trainyard::images

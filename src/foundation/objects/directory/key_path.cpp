#include "objects/directory/key_path.hpp"

namespace trainyard::objects {

std::string path_of(std::string_view key) {
  std::string path;
  for (;;) {
    const size_t slash = key.find('/');
    std::string_view segment = key.substr(0, slash);
    while (segment.size() >= kSegmentBytesMax) {
      path.append("c").append(segment.substr(0, kSegmentBytesMax)).append("/");
      segment.remove_prefix(kSegmentBytesMax);
    }
    if (slash == key.npos) return path.append("o").append(segment);
    path.append("d").append(segment).append("/");
    key.remove_prefix(slash + 1);
  }
}

std::string key_bytes_of(std::string_view file_name) {
  std::string bytes(file_name.substr(file_name.empty() ? 0 : 1));
  if (file_name.starts_with('d')) bytes += '/';
  return bytes;
}

bool is_inner(std::string_view key_bytes) {
  return key_bytes.ends_with('/') || key_bytes.size() == kSegmentBytesMax;
}

std::string file_name_of(std::string_view key_bytes) {
  if (key_bytes.ends_with('/')) return "d" + std::string(key_bytes.substr(0, key_bytes.size() - 1));
  return (is_inner(key_bytes) ? "c" : "o") + std::string(key_bytes);
}

}  // namespace trainyard::objects

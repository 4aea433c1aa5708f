// Decodes any bytes as documents of an image. The first byte selects the decoder.
//
// decoder: src/machine/containers/oci_image.cpp
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "containers/oci_image.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::containers;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'i':
      (void)find_in_index(text, "latest");
      break;
    case 'o':
      (void)find_in_index(text, "");
      break;
    case 'm':
      (void)read_manifest(text, "amd64");
      break;
    case 'c':
      (void)read_image_config(text);
      break;
    case 'u': {
      // The rest is USER, /etc/passwd and /etc/group, separated by zero bytes.
      const size_t first = text.find('\0');
      const size_t second = first == text.npos ? text.npos : text.find('\0', first + 1);
      if (second == text.npos) break;
      (void)find_user(text.substr(0, first), text.substr(first + 1, second - first - 1),
                      text.substr(second + 1));
      break;
    }
  }
  return 0;
}

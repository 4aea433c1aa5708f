// Parses any bytes as a list of images. No path leaves the folder of the channel.
// decoder: src/compute/images/list_file.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "images/list_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const auto listed = images::parse_list({reinterpret_cast<const char*>(data), size});
  if (!listed) return 0;
  for (const auto& each : *listed) {
    CHECK(!each.labels.empty(), "an image has a label");
    CHECK(!each.path.empty() && each.path.front() != '/' &&
              ("/" + each.path + "/").find("/../") == std::string::npos,
          "a path stays beneath the folder");
  }
  return 0;
}

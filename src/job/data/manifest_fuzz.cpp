// Decodes manifests and augmented manifests: written by users, read on every host.
// decoder: src/job/data/manifest.cpp
#include <string>
#include <string_view>

#include "data/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::data;
  // An empty file stands for a too large one, which cannot be committed.
  const std::string too_much(size == 0 ? kManifestBytesMax + 1 : 0, ' ');
  const std::string long_line(size == 0 ? kAugmentedLineBytesMax + 1 : 0, 'x');
  const std::string_view text =
      size == 0 ? too_much : std::string_view(reinterpret_cast<const char*>(data), size);
  (void)read_manifest(text);
  (void)split_lines(long_line);
  const auto lines = split_lines(text);
  if (!lines) return 0;
  for (const auto line : *lines) {
    const auto attributes = read_augmented_line(line, {"source-ref", "class"});
    if (attributes && (attributes->size() != 2 || !attributes->front().from)) __builtin_trap();
  }
  return 0;
}

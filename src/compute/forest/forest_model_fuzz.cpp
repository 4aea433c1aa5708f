// Decodes any bytes, with a correct checksum, as a model. A decoded model encodes to the same
// bytes, scores points, and can be updated.
// decoder: src/compute/forest/model_file.cpp
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes/little_endian.hpp"
#include "base/fnv.hpp"
#include "forest/model_file.hpp"

namespace {

constexpr uint64_t kMemoryMax = 64 << 20;

void use(trainyard::forest::Forest forest) {
  const size_t dimensions = forest.options().dimensions;
  std::vector<float> point(dimensions, 0.5f);
  for (int i = 0; i < 4; ++i) {
    const double score = forest.score(point);
    if (!std::isfinite(score) || score < 0) __builtin_trap();
    if (forest.rows_seen() == UINT64_MAX) return;
    forest.update(point);
    point[size_t(i) % dimensions] += 1;
  }
  if (!trainyard::forest::decode_forest(trainyard::forest::encode_forest(forest))) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)forest::decode_forest(bytes, kMemoryMax);
  append_little_endian(bytes, fnv1a(bytes), 8);
  auto model = forest::decode_forest(bytes, kMemoryMax);
  if (!model) return 0;
  auto again = forest::decode_forest(forest::encode_forest(*model), kMemoryMax);
  if (!again || forest::encode_forest(*again) != forest::encode_forest(*model)) __builtin_trap();
  use(*std::move(model));
  return 0;
}

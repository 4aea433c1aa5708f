// decoder: src/control_plane/observe/points/point_block.cpp
//
// Decodes any bytes as a block and as a batch of points, also with a correct checksum. The result
// encodes to bytes that decode to the same samples.
#include "base/bytes/crc.hpp"
#include "base/check.hpp"
#include "observe/bytes.hpp"
#include "observe/points/point_batch.hpp"
#include "observe/points/point_block.hpp"
#include "observe/testing/samples.hpp"

using namespace trainyard;
using namespace trainyard::observe;

namespace {

void check_block(std::string_view bytes) {
  const auto samples = decode_point_block(bytes);
  if (!samples) return;
  CHECK(samples->size() <= kPointBlockPointsMax, "the size is limited");
  for (std::span<const Sample> left = *samples; !left.empty();) {
    const EncodedPoints block = encode_point_block(left);
    const auto again = decode_point_block(block.bytes);
    CHECK(again && same_samples(*again, left.first(block.count)), "a block has one meaning");
    left = left.subspan(block.count);
  }
}

void check_batch(std::string_view bytes) {
  PointBatch batch;
  std::vector<Sample> samples, again;
  const auto decoded = decode_point_batch(bytes, [&](int64_t series, const Sample& sample) {
    batch.add(series, sample);
    samples.push_back(sample);
  });
  if (!decoded) return;
  CHECK(decode_point_batch(batch.finish(),
                           [&](int64_t, const Sample& sample) { again.push_back(sample); }),
        "a batch decodes");
  CHECK(same_samples(samples, again), "a batch has one meaning");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check_block(bytes);
  check_batch(bytes);
  // The input without a checksum.
  put(bytes, Crc32::of(bytes));
  check_block(bytes);
  check_batch(bytes);
  return 0;
}

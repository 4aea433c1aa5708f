// Decodes any bytes as csv and as records. Pieces of any size must give the same rows.
// decoder: src/compute/forest/rows/row_decoder.cpp src/compute/channels/tensor_record.cpp
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "forest/rows/row_decoder.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::forest;

constexpr size_t kDimensions = 3;

std::string rows(std::string_view bytes, RowFormat format, size_t step) {
  RowDecoder decoder(format, kDimensions);
  std::string all;
  const RowCallback take = [&](std::span<const float> features, std::optional<double> label) {
    if (features.size() != kDimensions) __builtin_trap();
    for (const float value : features) {
      if (!std::isfinite(value)) __builtin_trap();
      all += std::to_string(value) + ",";
    }
    all += label ? std::to_string(*label) + ";" : ";";
    return ok();
  };
  for (size_t at = 0; at < bytes.size(); at += step)
    if (const auto done = decoder.push(bytes.substr(at, step), take); !done)
      return all + "!" + done.error().message;
  const auto done = decoder.finish(take);
  return done ? all : all + "?" + done.error().message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const RowFormat format :
       {RowFormat{RowFormat::Type::csv, false}, RowFormat{RowFormat::Type::csv, true},
        RowFormat{RowFormat::Type::record, true}})
    if (rows(bytes, format, 5) != rows(bytes, format, size + 1)) __builtin_trap();
  (void)parse_content_type(bytes.substr(0, 64));
  TensorRecord record;
  if (decode_record(bytes, kDimensions, record)) {
    TensorRecord again;
    if (record.label && !std::isfinite(float(*record.label))) record.label.reset();
    if (!decode_record(encode_record(record), kDimensions, again) ||
        again.features != record.features || again.label.has_value() != record.label.has_value())
      __builtin_trap();
  }
  return 0;
}

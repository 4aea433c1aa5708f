// decoder: src/control_plane/remote_write/write_request.cpp
//
// Decodes any bytes as a request: the result is within the limits, and stays the same when it is
// encoded and decoded again.
#include <cmath>

#include "base/check.hpp"
#include "remote_write/write_request.hpp"

using namespace trainyard;
using namespace trainyard::remote_write;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const DecodeLimits limits;
  auto series = decode(std::string_view(reinterpret_cast<const char*>(data), size), limits);
  if (!series) return 0;
  CHECK(series->size() <= limits.series_max, "the result is within the limit");
  for (TimeSeries& each : *series)
    for (WriteSample& sample : each.samples)
      if (std::isnan(sample.value)) sample.value = 0;  // NaN does not equal itself
  CHECK(*decode(encode(*series), limits) == *series, "the result round-trips");
  return 0;
}

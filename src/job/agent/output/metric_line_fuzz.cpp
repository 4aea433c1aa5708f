// Decodes any line of a metric file, which a job writes.
// decoder: src/job/agent/output/metric_line.cpp
#include <cmath>

#include "agent/output/metric_files.hpp"
#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const Instant now = from_milliseconds(1'763'631'900'000);
  const auto point = agent::parse_metric_line({reinterpret_cast<const char*>(data), size}, now);
  if (!point) return 0;
  CHECK(!point->name.empty() && std::isfinite(point->value), "a metric has a name and a number");
  CHECK(point->at >= now - agent::kMetricAgeMax - 1s &&
            point->at <= now + agent::kMetricAheadMax + 1s,
        "times are near now");
  return 0;
}

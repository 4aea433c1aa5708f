// Converts series that a sender of remote write has sent into points of metrics.
//
// The metric of a series has the name in its label __name__, the namespace Prometheus, and the
// other labels as dimensions. Samples that are not finite (such as the markers of stale series,
// which are NaN) or have times that CloudWatch does not accept are left out.
//
// Keys use more memory than the labels of a request, so their bytes are limited, too.
//
// Threads: pure functions. Errors: invalid: a series without a name, with too many labels, or with
// a label twice; exhausted: more than kKeyBytesMax.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/metrics.hpp"
#include "remote_write/write_request.hpp"

namespace trainyard::remote_write {

inline constexpr std::string_view kReceivedNamespace = "Prometheus";
inline constexpr size_t kDimensionsMax = 30;         // as CloudWatch
inline constexpr size_t kNameBytesMax = 255;         // for names of metrics, as CloudWatch
inline constexpr size_t kKeyBytesMax = 64 << 20;     // names and labels of all series, in memory
inline constexpr Duration kOldestSample = 14 * 24h;  // before now, as CloudWatch
inline constexpr Duration kNewestSample = 2h;        // after now

struct ReceivedPoints {
  std::vector<observe::MetricSeries> series;  // none is empty
  uint64_t count = 0;                         // points in all series
  uint64_t left_out = 0;                      // samples
};

Result<ReceivedPoints> points_of(const std::vector<TimeSeries>& series, const std::string& region,
                                 Instant now);

}  // namespace trainyard::remote_write

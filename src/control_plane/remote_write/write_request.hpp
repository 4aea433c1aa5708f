// Encodes and decodes prometheus.WriteRequest, the message of remote write 1.0, and the messages
// that it contains: TimeSeries, Label and Sample.
//
//   WriteRequest { repeated TimeSeries timeseries = 1; }     further fields are skipped
//   TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
//   Label        { string name = 1; string value = 2; }
//   Sample       { double value = 1; int64 timestamp = 2; }  milliseconds since 1970
//
// Threads: pure functions. Errors: of decode: invalid (malformed), exhausted (a limit).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace trainyard::remote_write {

struct WriteSample {
  double value = 0;
  int64_t milliseconds = 0;
  bool operator==(const WriteSample&) const = default;
};

struct TimeSeries {
  std::vector<std::pair<std::string, std::string>> labels;  // sorted by name when sent
  std::vector<WriteSample> samples;                         // by time when sent
  bool operator==(const TimeSeries&) const = default;
};

struct DecodeLimits {
  size_t series_max = 10'000;
  size_t samples_max = 100'000;  // in all series together
  size_t labels_max = 64;        // in one series
  size_t label_bytes_max = 1024;
};

std::string encode(const std::vector<TimeSeries>& series);
Result<std::vector<TimeSeries>> decode(std::string_view message, const DecodeLimits& limits);

}  // namespace trainyard::remote_write

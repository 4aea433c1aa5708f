// Reads metrics that a program writes to files instead of its log: lines of JSON in *.json files in
// $SAGEMAKER_METRICS_DIRECTORY (/opt/ml/output/metrics/sagemaker). SageMaker's own libraries write
// one file per process there.
//
//   {"MetricName": "loss", "Value": 0.25, "Timestamp": 1700000000.5, "IterationNumber": 7}
//
// Only name and value are required. Without a time, or with one that AWS would reject, the time of
// reading is used. The metrics become points of the job, in addition to those that regexes find in
// its log.
//
// Threads: MetricFiles is confined to one; parse_metric_line is pure. Errors: none: an invalid line
// is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/tree.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr const char* kMetricFilesDirectory = "output/metrics/sagemaker";  // below /opt/ml
inline constexpr const char* kMetricFilesVariable = "SAGEMAKER_METRICS_DIRECTORY";
// One file per process: enough for all ranks and helper processes of a host.
inline constexpr size_t kMetricFilesMax = 256;
// The library's lines are below 200 bytes; CloudWatch's names have at most 255 characters.
inline constexpr size_t kMetricLineBytesMax = 4096, kMetricNameBytesMax = 255;
// The limit for one file in one pass: a program that writes more than a megabyte a second is read
// with a delay, up to its end.
inline constexpr size_t kMetricBytesPerPassMax = 1 << 20;
// The limit of points in one pass over all files, which are sent as one batch: the same as for a
// log (log_pump.hpp). With the longest names they take a third of a frame. The next pass reads the
// rest.
inline constexpr size_t kMetricPointsPerPassMax = 10'000;
// The limit of passes over all files at the end: a program can make a sparse file of any size at no
// cost.
inline constexpr int kMetricLastPassesMax = 1024;
// The range of times that CloudWatch accepts.
inline constexpr Duration kMetricAgeMax = 14 * 24h, kMetricAheadMax = 2h;

std::optional<wire::MetricPoint> parse_metric_line(std::string_view line, Instant now);

class MetricFiles {
 public:
  // Receives the points of one pass, at most kMetricPointsPerPassMax. Returns false to end the
  // passes.
  using Consume = std::function<bool(std::vector<wire::MetricPoint> points)>;

  // Returns the points of the lines completed since the last call, at most kMetricPointsPerPassMax.
  // `base` is the job's /opt/ml.
  std::vector<wire::MetricPoint> read_new(const Tree& base, Instant now);
  // Reads the rest after the program has ended: to the end of every file, including incomplete last
  // lines, in at most kMetricLastPassesMax passes. Only the points of one pass are in memory.
  void read_rest(const Tree& base, Instant now, const Consume& consume);

 private:
  // Makes one pass. Returns true if there may be more to read.
  bool read_all(const Tree& base, Instant now, bool last, std::vector<wire::MetricPoint>& points);
  // By file name: the offset of the next line. At most kMetricFilesMax.
  std::map<std::string, uint64_t> read_to_;
};

}  // namespace trainyard::agent

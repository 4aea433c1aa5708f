// Reads metrics that a program writes to files instead of its log: lines of JSON in *.json below
// /opt/ml/output/metrics/sagemaker, the value of $SAGEMAKER_METRICS_DIRECTORY, where SageMaker's
// own libraries write one file per process.
//
//   {"MetricName": "loss", "Value": 0.25, "Timestamp": 1700000000.5, "IterationNumber": 7}
//
// Only name and value are required; without a time, or with one that AWS would reject, the time of
// reading is used. They become points of the job, in addition to those that regexes find in its
// log.
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
inline constexpr size_t kMetricBytesOfLookMax = 1 << 20;
// Points of one pass over all files, which are one batch: as many as of a log (log_pump.hpp). With
// the longest names they take a third of a frame. The rest is read in the next pass.
inline constexpr size_t kMetricPointsOfLookMax = 10'000;
// The limit of passes over all files at the end: a sparse file may have any size, and costs its
// program nothing.
inline constexpr int kMetricLastLooksMax = 1024;
// The range of times that CloudWatch accepts.
inline constexpr Duration kMetricAgeMax = 14 * 24h, kMetricAheadMax = 2h;

std::optional<wire::MetricPoint> parse_metric_line(std::string_view line, Instant now);

class MetricFiles {
 public:
  // Accepts the points of one pass, at most kMetricPointsOfLookMax; false from it ends the passes.
  using Tell = std::function<bool(std::vector<wire::MetricPoint> points)>;

  // Returns the points of the lines completed since the last call, at most kMetricPointsOfLookMax.
  // `base` is the job's /opt/ml.
  std::vector<wire::MetricPoint> look(const Tree& base, Instant now);
  // Does the same once the program has ended: to the end of every file, incomplete last lines
  // included, or up to kMetricLastLooksMax passes. Keeps the points of one pass only in memory.
  void look_last(const Tree& base, Instant now, const Tell& tell);

 private:
  // Returns whether there may be more to read.
  bool look_at_all(const Tree& base, Instant now, bool last,
                   std::vector<wire::MetricPoint>& points);
  std::map<std::string, uint64_t>
      read_to_;  // by file name: the offset of its next line; kMetricFilesMax at most
};

}  // namespace trainyard::agent

// Metrics that a program writes to files instead of its log: lines of JSON in *.json below
// /opt/ml/output/metrics/sagemaker, where $SAGEMAKER_METRICS_DIRECTORY points and SageMaker's own libraries write one
// file a process.
//
//   {"MetricName": "loss", "Value": 0.25, "Timestamp": 1700000000.5, "IterationNumber": 7}
//
// Name and value count; without a time, or with one that AWS would refuse, it is when the line was read. They become
// points of the job, beside those that regexes find in its log.
//
// Threads: MetricFiles is confined to one; parse_metric_line is pure. Errors: none: a line that is no metric is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/tree.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr const char* kMetricFilesDirectory = "output/metrics/sagemaker";  // below /opt/ml
inline constexpr const char* kMetricFilesVariable = "SAGEMAKER_METRICS_DIRECTORY";
// A file a process: of a host with so many ranks and their helpers.
inline constexpr size_t kMetricFilesMax = 256;
// The library's are below 200; CloudWatch's names are 255 characters at most.
inline constexpr size_t kMetricLineBytesMax = 4096, kMetricNameBytesMax = 255;
// Of one file at one look: who writes more than a megabyte a second is behind, and catches up at the end.
inline constexpr size_t kMetricBytesOfLookMax = 1 << 20;
// At the end so many looks at all files: a sparse file has any size, and costs its program nothing.
inline constexpr int kMetricLastLooksMax = 1024;
// What CloudWatch takes of times that are not now.
inline constexpr Duration kMetricAgeMax = 14 * 24h, kMetricAheadMax = 2h;

std::optional<wire::MetricPoint> parse_metric_line(std::string_view line, Instant now);

class MetricFiles {
 public:
  // What whole lines were written since the last call. `base` is what the job sees as /opt/ml.
  std::vector<wire::MetricPoint> look(const Tree& base, Instant now);
  // The same once nothing writes any more: to the end of every file, its last line included, or as far as
  // kMetricLastLooksMax looks go.
  std::vector<wire::MetricPoint> look_last(const Tree& base, Instant now);

 private:
  // Whether there may be more to read.
  bool look_at_all(const Tree& base, Instant now, bool last, std::vector<wire::MetricPoint>& points);
  std::map<std::string, uint64_t>
      read_to_;  // by file name: where its next line begins; kMetricFilesMax at most
};

}  // namespace trainyard::agent

// Finds the metrics of a job's regexes in its log lines.
//
// A regex is searched in the stored form of the line. Its first group (or, without one, the whole
// match) is the value; a value that is not a finite number is ignored. The documented regexes of
// AWS's own algorithms were written for logs that show a tab as "#011": a regex with "#011" is
// searched in a copy of the line with its tabs replaced. Stored lines keep their tabs, so regexes
// with \t or \s match as well.
//
// Threads: immutable after make(). Errors: invalid, naming the metric and RE2's error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

class MetricMatcher {
 public:
  virtual ~MetricMatcher() = default;
  // Appends one point for each definition that the line matches.
  virtual void match(const std::string& line, Instant at,
                     std::vector<wire::MetricPoint>& points) const = 0;
};

Result<std::unique_ptr<MetricMatcher>> make_metric_matcher(
    const std::vector<domain::MetricDefinition>& definitions);

}  // namespace trainyard::agent

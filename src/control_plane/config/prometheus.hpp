// Reads [prometheus], [[prometheus.tokens]] and [[prometheus.remote_write]].
//
// Threads: pure, except for files with tokens. Errors: invalid, with key and expected value; those
// of the files.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::config {

class Table;

// A bearer token that scrapes metrics.
struct MetricsToken {
  std::string token;
  std::string user;  // whose rights it has; "": the owner's
};

// A receiver of Prometheus' remote write protocol.
struct RemoteWriteTarget {
  std::string name;
  std::string url;            // "https://mimir.lan/api/v1/push"
  std::string authorization;  // the value of that header; "": none
  std::string ca_bundle;      // PEM file; "": the system's
};

struct PrometheusSettings {
  std::vector<MetricsToken> tokens;  // for scrapes
  std::vector<RemoteWriteTarget> remote_write;
  int64_t series_of_job_max = 1'000;   // metrics of one job that scrapes have
  int64_t series_max = 100'000;        // metrics of all running jobs, in memory
  int64_t scrape_series_max = 50'000;  // metrics of jobs in one scrape
};

// `directory`: of relative paths.
Result<void> read_prometheus(Table& root, const std::string& directory,
                             PrometheusSettings& settings);

}  // namespace trainyard::config

// Reads [prometheus], [[prometheus.tokens]], [[prometheus.remote_write]] and [[otlp]].
//
// Threads: pure, except for files with tokens. Errors: invalid, with key and expected value; those
// of the files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::config {

class Table;

// A bearer token that scrapes metrics.
struct MetricsToken {
  std::string token;
  std::string user;  // the token has this user's rights; "": the owner's
};

// A receiver of metrics, by Prometheus' remote write protocol or by OTLP/HTTP.
struct RemoteWriteTarget {
  std::string name;
  std::string url;  // "https://mimir.lan/api/v1/push", "http://collector:4318/v1/metrics"
  std::vector<std::pair<std::string, std::string>> headers;  // sent with each request
  std::string ca_bundle;                                     // PEM file; "": the system's
  bool otlp = false;
};

struct PrometheusSettings {
  std::vector<MetricsToken> tokens;             // for scrapes
  std::vector<RemoteWriteTarget> remote_write;  // also the receivers of OTLP
  int64_t series_of_job_max = 1'000;            // metrics of one job in scrapes
  int64_t series_max = 100'000;                 // metrics of all running jobs, in memory
  int64_t scrape_series_max = 50'000;           // metrics of jobs in one scrape
};

// Relative paths are below `directory`.
Result<void> read_prometheus(Table& root, const std::string& directory,
                             PrometheusSettings& settings);

}  // namespace trainyard::config

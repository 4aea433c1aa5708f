// ServedPrometheus connects the metrics for Prometheus with the server's other parts: it receives
// points and changes of jobs, answers scrapes and remote writes with tokens on the API's port, and
// serves the server's metrics without signatures on the address that the config names.
//
// Call prepare(), follow(), listen() and pages() in this order, once each.
//
// Threads: confined to the main thread, except for the functions that events() and points() return,
// which are callable from any. Errors: those of listening.
// Lifetime: the config and the arguments outlive it; it outlives the control loops, the storage's
// use and the HTTP server.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "config/config.hpp"
#include "control/control.hpp"
#include "exposition/latest_values.hpp"
#include "net/http_server.hpp"
#include "observe/followed_metrics.hpp"
#include "observe/logs.hpp"
#include "operations/services.hpp"
#include "trainyard/monitoring/metrics_endpoint.hpp"
#include "trainyard/monitoring/remote_writers.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {

class ServedPrometheus {
 public:
  void prepare(const config::PrometheusSettings& settings);
  // Returns a function that counts stored log events and passes them to `next`.
  observe::EventsAppended events(observe::EventsAppended next);
  // Returns a function that counts stored points.
  observe::PointsAppended points();
  const IngestCounts& ingest() const { return ingest_; }
  // Keeps the values of jobs that have not ended, including those in memory now. A job is added
  // right after the commit that creates it, so before it has a host. Requires: the control loops
  // have not started.
  void follow(control::ControlPlane& control);
  // Serves the metrics at `address` and sets `host_and_port`; for "" returns nullptr. The result
  // must be destroyed before the sources.
  Result<std::unique_ptr<net::HttpServer>> listen(const MetricsSources& sources,
                                                  const std::string& address,
                                                  std::string& host_and_port);
  // Returns a handler in front of `next`, which answers requests with bearer tokens.
  net::Handler& pages(const api::Settings& settings, const api::Services& services,
                      const ReloadableSettings& reloadable, const RemoteWriters& writers,
                      net::Handler& next);

 private:
  config::PrometheusSettings settings_;
  IngestCounts ingest_;
  std::optional<exposition::LatestValues> values_;
  std::optional<MetricsEndpoint> endpoint_;
  std::unique_ptr<net::Handler> write_, scrape_;
};

}  // namespace trainyard::apps

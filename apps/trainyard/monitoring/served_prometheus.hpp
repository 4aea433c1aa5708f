// ServedPrometheus connects the metrics for Prometheus with the server's other parts: it follows
// points and jobs, answers scrapes and remote writes on the API's port with tokens, and serves the
// server's metrics without signatures where the config says so.
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
  // Count what is stored; `next` gets the events as well.
  observe::EventsAppended events(observe::EventsAppended next);
  observe::PointsAppended points();
  const IngestCounts& ingest() const { return ingest_; }
  // Keeps the values of jobs that are not over, those in memory now included. A job is known right
  // after the commit that creates it, and so before it has a host. Requires: the control loops have
  // not started.
  void follow(control::ControlPlane& control);
  // Serves the metrics at `address`, and sets host and port; "": nowhere, and returns nullptr. The
  // result must end before the sources.
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

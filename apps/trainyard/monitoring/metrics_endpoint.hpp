// Exports the server's own metrics to Prometheus, on a separate address (server.metrics_listen in
// the config): GET /metrics, /healthz and /readyz, without signatures. On the API's port, which
// jobs can reach, scrapes need a token (prometheus/scrape.hpp).
//
// Threads: callable from anywhere. Lifetime: all sources outlive it. Errors: metrics that cannot be
// read are left out; serve_metrics() returns those of net::serve_http().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "control/control.hpp"
#include "control/loops.hpp"
#include "exposition/family.hpp"
#include "gateway/agents.hpp"
#include "net/http_server.hpp"
#include "objects/objects.hpp"
#include "operations/request_statistics.hpp"
#include "trainyard/fenced_launcher.hpp"

namespace trainyard::apps {

// Counts the log events and metric points that were stored since the server's start.
struct IngestCounts {
  std::atomic<uint64_t> log_events{0}, log_bytes{0}, metric_points{0};
};

struct MetricsSources {
  const api::RequestStatistics& requests;
  const control::LoopStatistics& loops;
  control::Control& control;
  gateway::Agents& agents;
  const net::HttpServer& front;
  const objects::Objects& objects;
  const FencedLauncher& launcher;
  const IngestCounts& ingest;
  std::string data_directory;  // its file system's space, and its last scrub, are exported
};

class MetricsEndpoint final : public net::Handler {
 public:
  explicit MetricsEndpoint(MetricsSources sources) : sources_(std::move(sources)) {}

  // Adds the server's metrics. Adds the metrics of each bucket only if `buckets` is true.
  void add_to(exposition::Families& families, bool buckets) const;

  Choice choose(const net::RequestHead& head) override;
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override;
  void stream(net::Stream&) override {}  // choose() never selects it

 private:
  const MetricsSources sources_;
};

// Serves `handler` at the address `listen`. Lifetime: the handler outlives the server.
Result<std::unique_ptr<net::HttpServer>> serve_metrics(const std::string& listen,
                                                       net::Handler& handler);

}  // namespace trainyard::apps

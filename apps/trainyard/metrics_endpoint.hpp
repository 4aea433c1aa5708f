// Exports the server's own metrics to Prometheus, on an address of its own (server.metrics_listen
// of the config): GET /metrics, /healthz and /readyz, without signatures. The API's port does not
// export them, since jobs reach it.
//
// Threads: callable from anywhere. Lifetime: all sources outlive it. Errors: none.
#pragma once

#include <memory>
#include <string>

#include "control/control.hpp"
#include "control/loops.hpp"
#include "gateway/agents.hpp"
#include "net/http_server.hpp"
#include "objects/objects.hpp"
#include "operations/request_statistics.hpp"

namespace trainyard::apps {

struct MetricsSources {
  const api::RequestStatistics& requests;
  const control::LoopStatistics& loops;
  control::Control& control;
  gateway::Agents& agents;
  const net::HttpServer& front;
  const objects::Objects& objects;
  std::string data_directory;  // its disk is reported
};

class MetricsEndpoint final : public net::Handler {
 public:
  explicit MetricsEndpoint(MetricsSources sources) : sources_(std::move(sources)) {}

  // Formats the metrics in Prometheus' text format.
  std::string text() const;

  Choice choose(const net::RequestHead& head) override;
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override;
  void stream(net::Stream&) override {}  // choose() never selects it

 private:
  const MetricsSources sources_;
};

// Serves `handler`, a MetricsEndpoint, at an address.
Result<std::unique_ptr<net::HttpServer>> serve_metrics(const std::string& listen,
                                                       net::Handler& handler);

}  // namespace trainyard::apps

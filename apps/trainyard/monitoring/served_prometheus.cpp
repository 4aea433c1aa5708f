#include "trainyard/monitoring/served_prometheus.hpp"

#include <utility>

#include "prometheus/scrape.hpp"
#include "prometheus/write.hpp"

namespace trainyard::apps {

void ServedPrometheus::prepare(const config::PrometheusSettings& settings) {
  settings_ = settings;
  values_.emplace(exposition::LatestLimits{.series_of_job_max = size_t(settings.series_of_job_max),
                                           .series_max = size_t(settings.series_max)});
}

observe::EventsAppended ServedPrometheus::events(observe::EventsAppended next) {
  return [this, next = std::move(next)](const observe::StreamKey& key,
                                        const std::vector<observe::LogEvent>& events) {
    uint64_t bytes = 0;
    for (const observe::LogEvent& event : events) bytes += event.message.size();
    ingest_.log_events.fetch_add(events.size(), std::memory_order_relaxed);
    ingest_.log_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (next) next(key, events);
  };
}

observe::PointsAppended ServedPrometheus::points() {
  return [this](const observe::MetricKey& key, std::span<const observe::Sample> samples) {
    ingest_.metric_points.fetch_add(samples.size(), std::memory_order_relaxed);
    values_->record(key, samples);
  };
}

void ServedPrometheus::follow(control::ControlPlane& control) {
  control.watch({[this](const auto& job) {
                   if (job->finished())
                     values_->forget(job->key);
                   else
                     values_->add(job->key);
                 },
                 [] {}});
  for (const auto& job : control.live_jobs())
    if (!job->finished()) values_->add(job->key);
}

Result<std::unique_ptr<net::HttpServer>> ServedPrometheus::listen(const MetricsSources& sources,
                                                                  const std::string& address,
                                                                  std::string& host_and_port) {
  endpoint_.emplace(sources);
  if (address.empty()) return std::unique_ptr<net::HttpServer>();
  auto server = TRY(serve_metrics(address, *endpoint_));
  host_and_port = address.substr(0, address.rfind(':') + 1) + std::to_string(server->port());
  return server;
}

net::Handler& ServedPrometheus::pages(const api::Settings& settings, const api::Services& services,
                                      const ReloadableSettings& reloadable,
                                      const RemoteWriters& writers, net::Handler& next) {
  const auto add_server = [this, &writers](exposition::Families& families, bool buckets) {
    endpoint_->add_to(families, buckets);
    writers.add_to(families);
  };
  const auto tokens = [&reloadable] {
    std::vector<api::prometheus::ConfiguredToken> all;
    const auto config = reloadable.all();
    for (const auto& each : config->prometheus.tokens) all.push_back({each.token, each.user});
    return all;
  };
  write_ = api::prometheus::make_write(settings, services, next);
  scrape_ = api::prometheus::make_scrape(
      {settings, services, *values_, add_server, tokens, size_t(settings_.scrape_series_max)},
      *write_);
  return *scrape_;
}

}  // namespace trainyard::apps

#include "trainyard/metrics_endpoint.hpp"

#include <filesystem>
#include <map>
#include <system_error>

#include "domain/job_state.hpp"
#include "trainyard/probes.hpp"
#include "trainyard/scrub.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kMetricsConnectionsMax = 64;  // Prometheus, and probes

constexpr std::string_view kJobs = "trainyard_jobs";
constexpr std::string_view kCommit = "trainyard_commit_seconds";
constexpr std::string_view kReconcile = "trainyard_reconcile_seconds";
constexpr std::string_view kDiskFree = "trainyard_disk_free_bytes";
constexpr std::string_view kDiskSize = "trainyard_disk_size_bytes";
constexpr std::string_view kBucketBytes = "trainyard_bucket_bytes";
constexpr std::string_view kBucketObjects = "trainyard_bucket_objects";
constexpr std::string_view kBrokenReads = "trainyard_broken_object_reads_total";

void gauge(PrometheusText& text, std::string_view name, std::string_view help, double value) {
  text.begin(name, "gauge", help);
  text.sample(name, {}, value);
}

void write_objects(PrometheusText& text, const objects::Objects& objects) {
  const auto statistics = objects.statistics();
  if (!statistics) return;
  text.begin(kBucketBytes, "gauge", "Bytes of a bucket, with parts of running uploads.");
  for (const auto& [bucket, amount] : statistics->buckets)
    text.sample(kBucketBytes, {{"bucket", bucket}}, double(amount.bytes));
  text.begin(kBucketObjects, "gauge", "Objects of a bucket.");
  for (const auto& [bucket, amount] : statistics->buckets)
    text.sample(kBucketObjects, {{"bucket", bucket}}, double(amount.objects));
  text.begin(kBrokenReads, "counter",
             "Reads that found an object broken: unreadable, or with another checksum.");
  text.sample(kBrokenReads, {}, double(statistics->broken_reads));
}

// Writes the counts of the last complete run of `trainyard scrub`, which is another process.
void write_scrub(PrometheusText& text, const std::string& data_directory) {
  const auto last = last_scrub(data_directory);
  if (!last) return;
  gauge(text, "trainyard_scrub_broken_objects", "Broken objects that the last scrub found.",
        double(last->broken));
  gauge(text, "trainyard_scrub_objects", "Objects that the last scrub read.",
        double(last->objects));
  gauge(text, "trainyard_scrub_end_seconds", "When the last scrub ended.", to_seconds(last->at));
}

}  // namespace

std::string MetricsEndpoint::text() const {
  PrometheusText text;
  sources_.requests.write(text);

  std::map<std::string_view, double> jobs;
  for (const auto& job : sources_.control.live_jobs()) jobs[domain::to_string(job->state)]++;
  text.begin(kJobs, "gauge", "Jobs that are not over or still hold something, by state.");
  for (const auto& [state, count] : jobs) text.sample(kJobs, {{"state", state}}, count);
  gauge(text, "trainyard_agents", "Agents that are linked.", double(sources_.agents.linked()));

  const net::HttpServer::Load load = sources_.front.load();
  gauge(text, "trainyard_connections", "Open connections to the API.", double(load.connections));
  gauge(text, "trainyard_streams_running",
        "Requests that have a thread of the pool, or the next free one.",
        double(load.streams_running));
  gauge(text, "trainyard_streams_waiting",
        "Requests that wait since their principal uses its share of threads.",
        double(load.streams_waiting));

  text.begin(kCommit, "histogram", "Time of one commit of the ledger.");
  text.histogram(kCommit, {}, sources_.loops.commit_seconds);
  text.begin(kReconcile, "histogram", "Time of one iteration of the reconcile loop.");
  text.histogram(kReconcile, {}, sources_.loops.reconcile_seconds);

  std::error_code error;
  const auto space = std::filesystem::space(sources_.data_directory, error);
  if (!error) {
    gauge(text, kDiskFree, "Free bytes of the data directory's file system.",
          double(space.available));
    gauge(text, kDiskSize, "Size of the data directory's file system.", double(space.capacity));
  }
  write_objects(text, sources_.objects);
  write_scrub(text, sources_.data_directory);
  return text.text();
}

net::Handler::Choice MetricsEndpoint::choose(const net::RequestHead& head) {
  // This endpoint exists only while the API is open.
  if (auto answer = answer_probe(head, "")) return {.refusal = std::move(*answer)};
  if (head.path() != "/metrics") return {.refusal = net::Response{404, {}, "see /metrics\n"}};
  if (head.method != "GET")
    return {.refusal = net::Response{405, {}, "only GET is answered here\n"}};
  return {.intake = net::Intake::blocking, .body_bytes_max = 0};
}

void MetricsEndpoint::handle(net::Request, std::unique_ptr<net::Responder> responder) {
  net::Response response;
  response.headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.body = text();
  responder->reply(std::move(response));
}

Result<std::unique_ptr<net::HttpServer>> serve_metrics(const std::string& listen,
                                                       net::Handler& handler) {
  net::HttpSettings settings;
  settings.listen = listen;
  settings.io_threads = 1;
  settings.stream_threads_max = settings.stream_threads_per_tenant = 1;
  settings.connections_max = settings.connections_per_peer_max = kMetricsConnectionsMax;
  return net::serve_http(settings, handler).in("serving metrics");
}

}  // namespace trainyard::apps

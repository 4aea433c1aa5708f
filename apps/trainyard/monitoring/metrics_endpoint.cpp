#include "trainyard/monitoring/metrics_endpoint.hpp"

#include <filesystem>
#include <system_error>

#include "exposition/cluster_families.hpp"
#include "exposition/text_format.hpp"
#include "os/process_usage.hpp"
#include "trainyard/operate/scrub.hpp"
#include "trainyard/probes.hpp"

namespace trainyard::apps {
namespace {

using exposition::Families;
using exposition::FamilyType;

constexpr size_t kMetricsConnectionsMax = 64;  // Prometheus, and health probes

void add_objects(Families& families, const objects::Objects& objects, bool buckets) {
  const auto statistics = objects.statistics();
  if (!statistics) return;
  families.counter("trainyard_broken_object_reads_total",
                   "Reads that found an object broken: unreadable, or with another checksum.",
                   double(statistics->broken_reads));
  if (!buckets) return;
  auto& bytes = families.add("trainyard_bucket_bytes", FamilyType::gauge,
                             "Bytes in a bucket, including the parts of unfinished uploads.");
  for (const auto& [bucket, amount] : statistics->buckets)
    bytes.sample({{"bucket", bucket}}, double(amount.bytes));
  auto& counts =
      families.add("trainyard_bucket_objects", FamilyType::gauge, "Objects in a bucket.");
  for (const auto& [bucket, amount] : statistics->buckets)
    counts.sample({{"bucket", bucket}}, double(amount.objects));
}

// Adds the counts of the last complete run of `trainyard scrub`, which is another process.
void add_scrub(Families& families, const std::string& data_directory) {
  const auto last = last_scrub(data_directory);
  if (!last) return;
  families.gauge("trainyard_scrub_broken_objects", "Broken objects that the last scrub found.",
                 double(last->broken));
  families.gauge("trainyard_scrub_objects", "Objects that the last scrub read.",
                 double(last->objects));
  families.gauge("trainyard_scrub_end_seconds", "End of the last scrub, in seconds since 1970.",
                 to_seconds(last->at));
}

// Adds Prometheus' standard metrics of a process.
void add_process(Families& families) {
  const auto usage = os::usage_of_this_process();
  if (!usage) return;
  families.counter("process_cpu_seconds_total", "Total user and system CPU time of this process.",
                   usage->cpu_seconds);
  families.gauge("process_open_fds", "Open file descriptors of this process.",
                 double(usage->open_files));
  families.gauge("process_max_fds", "Limit of open file descriptors of this process.",
                 double(usage->open_files_max));
  families.gauge("process_virtual_memory_bytes", "Virtual memory of this process.",
                 double(usage->virtual_bytes));
  families.gauge("process_resident_memory_bytes", "Resident memory of this process.",
                 double(usage->resident_bytes));
  families.gauge("process_threads", "Threads of this process.", double(usage->threads));
  families.gauge("process_start_time_seconds", "Start of this process, in seconds since 1970.",
                 usage->start_seconds);
}

void add_front(Families& families, const net::HttpServer::Load& load) {
  families.gauge("trainyard_connections", "Open connections to the API.", double(load.connections));
  families.gauge("trainyard_streams_running",
                 "Requests that run on a thread of the pool, or get its next free thread.",
                 double(load.streams_running));
  families.gauge("trainyard_streams_waiting",
                 "Requests that wait because their principal uses its share of threads.",
                 double(load.streams_waiting));
}

std::vector<exposition::ClusterMachine> machines_of(const std::vector<launch::Machine>& machines) {
  std::vector<exposition::ClusterMachine> out;
  out.reserve(machines.size());
  for (const launch::Machine& each : machines)
    out.push_back({each.name, each.kind, each.cpus, each.memory_bytes, each.gpus});
  return out;
}

}  // namespace

void MetricsEndpoint::add_to(Families& families, bool buckets) const {
  PrometheusText requests;
  sources_.requests.write(requests);
  families.add(requests);
  exposition::add_cluster_families(sources_.control.live_jobs(),
                                   machines_of(sources_.launcher.last_machines()), families);
  families.gauge("trainyard_agents", "Connected agents.", double(sources_.agents.linked()));
  add_front(families, sources_.front.load());
  families
      .add("trainyard_commit_seconds", FamilyType::histogram, "Duration of a commit of the ledger.")
      .histogram({}, sources_.loops.commit_seconds);
  families
      .add("trainyard_reconcile_seconds", FamilyType::histogram,
           "Duration of an iteration of the reconcile loop: reading and planning.")
      .histogram({}, sources_.loops.reconcile_seconds);
  const IngestCounts& ingest = sources_.ingest;
  families.counter("trainyard_log_events_total", "Log events that were stored.",
                   double(ingest.log_events.load(std::memory_order_relaxed)));
  families.counter("trainyard_log_bytes_total", "Bytes of the log events that were stored.",
                   double(ingest.log_bytes.load(std::memory_order_relaxed)));
  families.counter("trainyard_metric_points_total", "Metric points that were stored.",
                   double(ingest.metric_points.load(std::memory_order_relaxed)));
  std::error_code error;
  const auto space = std::filesystem::space(sources_.data_directory, error);
  if (!error) {
    families.gauge("trainyard_disk_free_bytes", "Free bytes of the data directory's file system.",
                   double(space.available));
    families.gauge("trainyard_disk_size_bytes", "Size of the data directory's file system.",
                   double(space.capacity));
  }
  add_objects(families, sources_.objects, buckets);
  add_scrub(families, sources_.data_directory);
  add_process(families);
}

net::Handler::Choice MetricsEndpoint::choose(const net::RequestHead& head) {
  // The server is ready whenever this endpoint is open.
  if (auto answer = answer_probe(head, "")) return {.refusal = std::move(*answer)};
  if (head.path() != "/metrics")
    return {.refusal = net::Response{404, {}, "not found: the metrics are at /metrics\n"}};
  if (head.method != "GET") return {.refusal = net::Response{405, {}, "only GET is supported\n"}};
  return {.intake = net::Intake::blocking, .body_bytes_max = 0};
}

void MetricsEndpoint::handle(net::Request request, std::unique_ptr<net::Responder> responder) {
  const auto format = exposition::choose_format(request.headers.get("accept"));
  Families families;
  add_to(families, true);
  net::Response response;
  response.headers.add("Content-Type", std::string(exposition::content_type(format)));
  response.body = exposition::format_text(families, format);
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

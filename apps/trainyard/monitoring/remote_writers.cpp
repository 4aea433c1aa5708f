#include "trainyard/monitoring/remote_writers.hpp"

#include <utility>

#include "client/curl.hpp"
#include "exposition/job_families.hpp"
#include "exposition/point_series.hpp"
#include "exposition/text_format.hpp"
#include "remote_write/otlp_metrics.hpp"
#include "remote_write/received.hpp"

namespace trainyard::apps {
namespace {

using exposition::Families;
using exposition::FamilyType;
using remote_write::NamedSeries;
using remote_write::Sender;

constexpr Duration kReceiverConnectLimit = 5s;
constexpr Duration kReceiverAnswerLimit = 10s;
constexpr std::string_view kReaderPrefix = "remote_write/";

// libcurl follows no redirects here, so a request goes where the configuration says, or nowhere.
Result<int> post(const config::RemoteWriteTarget& target, const std::string& body) {
  client::Curl curl({.ca_bundle = target.ca_bundle,
                     .connect_limit = kReceiverConnectLimit,
                     .answer_limit = kReceiverAnswerLimit});
  auto headers = target.headers;
  if (target.otlp)
    headers.emplace_back("Content-Type", "application/json");
  else
    headers.insert(headers.end(), {{"Content-Type", "application/x-protobuf"},
                                   {"Content-Encoding", "snappy"},
                                   {"X-Prometheus-Remote-Write-Version", "0.1.0"}});
  return TRY(curl.post(target.url, headers, body)).status;
}

// An empty value of a label means that there is no such label.
void add_labels(const exposition::Labels& labels, NamedSeries& series) {
  for (const auto& [name, value] : labels)
    if (!value.empty()) series.labels.emplace_back(name, exposition::to_label_value(value));
}

NamedSeries name_series(const observe::MetricKey& key, const std::string& instance,
                        control::Control& control) {
  const auto owner = exposition::owner_of(key);
  const auto point =
      owner ? exposition::series_of(key.name, owner->host) : exposition::other_series_of(key);
  NamedSeries series;
  series.factor = point.factor;
  series.counter = point.counter;
  const exposition::Labels all{
      {"__name__", std::string(point.family)}, {"job", "trainyard"}, {"instance", instance}};
  add_labels(all, series);
  if (owner) {
    const auto job = control.find(owner->job);
    const exposition::Labels known{{"region", owner->job.region}, {"job_name", owner->job.name}};
    add_labels(job ? *exposition::labels_of(**job) : known, series);
  }
  add_labels(point.labels, series);
  return series;
}

}  // namespace

observe::JournalSettings journal_of(const config::PrometheusSettings& settings) {
  observe::JournalSettings journal;
  for (const config::RemoteWriteTarget& target : settings.remote_write)
    journal.readers.push_back(std::string(kReaderPrefix) + target.name);
  journal.wanted = [](const observe::MetricKey& key) {
    return key.name_space != remote_write::kReceivedNamespace;
  };
  return journal;
}

void RemoteWriters::start(const config::PrometheusSettings& settings,
                          observe::PointJournal* journal, control::Control& control,
                          const std::string& instance, Instant started) {
  journal_ = journal;
  if (!journal) return;
  for (const config::RemoteWriteTarget& target : settings.remote_write) {
    remote_write::SenderSettings sender{.name = std::string(kReaderPrefix) + target.name};
    if (target.otlp)
      sender.encode = [started](const std::vector<remote_write::TimeSeries>& series) {
        return remote_write::otlp_metrics_of(series, started);
      };
    senders_.push_back(std::make_unique<Sender>(
        *journal,
        [instance, &control](const observe::MetricKey& key) {
          return name_series(key, instance, control);
        },
        [target](const std::string& body) { return post(target, body); }, std::move(sender)));
  }
}

void RemoteWriters::stop() {
  for (const auto& sender : senders_) sender->end();
  for (const auto& sender : senders_) sender->wait();
}

void RemoteWriters::add_to(Families& families) const {
  if (senders_.empty()) return;
  using Counts = remote_write::SenderCounts;
  const auto add = [&](std::string_view name, std::string_view help,
                       const std::atomic<uint64_t> Counts::*count) {
    auto& family = families.add(name, FamilyType::counter, help);
    for (const auto& sender : senders_)
      family.sample({{"receiver", sender->name().substr(kReaderPrefix.size())}},
                    double((sender->counts().*count).load(std::memory_order_relaxed)));
  };
  add("trainyard_remote_write_samples_total", "Samples that a receiver has accepted.",
      &Counts::samples);
  add("trainyard_remote_write_requests_total", "Requests that a receiver has accepted.",
      &Counts::requests);
  add("trainyard_remote_write_failures_total",
      "Requests without an answer, or that a receiver could not take.", &Counts::failures);
  add("trainyard_remote_write_left_out_total",
      "Samples that a receiver does not take: rejected, or older than those before.",
      &Counts::left_out);
  add("trainyard_remote_write_lost_total",
      "Points that were removed before a receiver could take them.", &Counts::lost);
  auto& behind = families.add("trainyard_remote_write_behind_points", FamilyType::gauge,
                              "Points that a receiver has not taken yet.");
  for (const auto& sender : senders_)
    if (const auto count = journal_->behind(sender->name()))
      behind.sample({{"receiver", sender->name().substr(kReaderPrefix.size())}}, double(*count));
}

}  // namespace trainyard::apps

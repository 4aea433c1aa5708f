#include "log_routing/deliveries.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/json_record.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "log_routing/delivery_format.hpp"
#include "log_routing/gzip.hpp"

namespace trainyard::log_routing {
namespace {

using observe::DefinitionKind;

constexpr size_t kPageEvents = 10'000;
// The positions of one log group: enough for each of its streams in many deliveries.
constexpr size_t kPositionsMax = 10'000'000;

struct StoredPosition {
  uint64_t at = 0;
  int64_t stream_created = 0;
};
constexpr auto kPosition = json_record<StoredPosition>("position", [](auto& side, auto& position) {
  side("at", position.at);
  side("stream_created", position.stream_created);
});

std::string position_name(const std::string& id, const std::string& stream) {
  return id + " " + stream;
}

}  // namespace

bool Deliveries::Job::same_work(const Job& other) const {
  return delivery.text() == other.delivery.text() &&
         destination.text() == other.destination.text() && source.group == other.source.group &&
         source.stream_prefix == other.source.stream_prefix;
}

Deliveries::Deliveries(observe::Logs& logs, objects::Objects& objects, const LogTargets& targets,
                       std::vector<OutsideSource> outside, Post post, Clock& clock, Random& random,
                       DeliveriesSettings settings)
    : logs_(logs),
      objects_(objects),
      targets_(targets),
      post_(std::move(post)),
      clock_(clock),
      settings_(settings),
      catalogue_(logs, objects, targets, std::move(outside), random) {}

Result<std::unique_ptr<Deliveries>> Deliveries::start(observe::Logs& logs,
                                                      objects::Objects& objects,
                                                      const LogTargets& targets,
                                                      std::vector<OutsideSource> outside, Post post,
                                                      Clock& clock, Random& random,
                                                      DeliveriesSettings settings) {
  std::unique_ptr<Deliveries> made(new Deliveries(logs, objects, targets, std::move(outside),
                                                  std::move(post), clock, random, settings));
  TRY(made->reload());
  TRY(made->forget_removed_deliveries());
  for (const DeliveryType type : enumerators<DeliveryType>())
    made->threads_.emplace_back([all = made.get(), type] { all->work(type); });
  return made;
}

Deliveries::~Deliveries() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Result<void> Deliveries::reload() {
  std::map<Id, std::shared_ptr<const Job>> jobs;
  for (const auto& [region, stored] : TRY(logs_.definitions().all(DefinitionKind::delivery))) {
    auto job = std::make_shared<Job>();
    job->id = {region, stored.name};
    job->delivery = TRY(LogDelivery::from(stored.body));
    const auto source = catalogue_.source(region, job->delivery.source);
    const auto destination = catalogue_.destination(region, job->delivery.destination);
    const auto streams = source ? catalogue_.streams_of(region, *source) : std::nullopt;
    if (!streams || !destination) {
      log(Level::error, "log_routing", "a delivery has no source or no destination any longer",
          {{"delivery", stored.name}, {"source", job->delivery.source}});
      continue;
    }
    job->service = DeliveryCatalogue::service_of(*source);
    job->source = *streams;
    job->destination = *destination;
    jobs.emplace(job->id, std::move(job));
  }
  const MutexLock lock(mutex_);
  std::erase_if(progress_, [&](const auto& each) { return !jobs.contains(each.first); });
  for (const auto& [id, job] : jobs) {
    Progress& progress = progress_[id];
    if (progress.job && progress.job->same_work(*job)) continue;
    progress.job = job;
    progress.all = true;
    progress.due = {};
    progress.pause = {};
  }
  changed_.notify_all();
  return ok();
}

void Deliveries::take(const observe::StreamKey& key) {
  const MutexLock lock(mutex_);
  for (auto& [id, progress] : progress_) {
    const SourceStreams& source = progress.job->source;
    if (id.first != key.region || source.group != key.group ||
        !key.stream.starts_with(source.stream_prefix))
      continue;
    if (progress.streams.insert(key.stream).second) changed_.notify_all();
  }
}

bool Deliveries::drain(Duration at_most) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) {
    return std::ranges::all_of(progress_, [](const auto& each) { return each.second.idle(); });
  });
}

Deliveries::Progress* Deliveries::due_work(DeliveryType type) {
  const auto now = clock_.monotonic();
  for (auto& [id, progress] : progress_)
    if (progress.job->destination.type == type && !progress.idle() && !progress.busy &&
        now >= progress.due)
      return &progress;
  return nullptr;
}

void Deliveries::work(DeliveryType type) {
  for (;;) {
    std::shared_ptr<const Job> job;
    std::set<std::string> streams;
    bool all = false;
    {
      MutexLock lock(mutex_);
      Progress* next = nullptr;
      changed_.wait_for(lock, settings_.tick, [&]() REQUIRES(mutex_) {
        next = due_work(type);
        return stopping_ || next;
      });
      if (stopping_) return;
      if (!next) continue;
      job = next->job;
      all = std::exchange(next->all, false);
      streams = std::exchange(next->streams, {});
      next->busy = true;
    }
    const auto done = run(*job, all, streams);
    const MutexLock lock(mutex_);
    finish(job->id, done, all, std::move(streams));
  }
}

void Deliveries::finish(const Id& id, const Result<void>& done, bool all,
                        std::set<std::string> streams) {
  changed_.notify_all();
  const auto found = progress_.find(id);
  if (found == progress_.end()) return;  // it was removed
  Progress& progress = found->second;
  progress.busy = false;
  if (done) {
    progress.pause = {};
    progress.due = progress.job->destination.type == DeliveryType::s3
                       ? clock_.monotonic() + settings_.object_interval
                       : std::chrono::nanoseconds{};
    return;
  }
  progress.all |= all;
  progress.streams.merge(streams);
  // One line for each row of failures: while they last, the pause only grows.
  if (progress.pause == Duration{} && !stopping_)
    log(Level::warning, "log_routing", "a delivery of logs failed and is retried",
        {{"delivery", id.second}, {"why", done.error().message}});
  progress.pause = std::clamp(progress.pause * 2, settings_.first_pause, settings_.pause_max);
  progress.due = clock_.monotonic() + progress.pause;
}

Result<void> Deliveries::run(const Job& job, bool all, const std::set<std::string>& streams) {
  const std::string& region = job.id.first;
  if (all) {
    auto found = logs_.streams(region, job.source.group, job.source.stream_prefix);
    if (!found && found.error().is(observe::LogResource::group)) return ok();  // nothing to deliver
    if (!found) return std::move(found).error();
    TRY(forget_removed_streams(job, *found));
    Result<void> done;
    for (const auto& stream : *found) {
      auto delivered = deliver_stream(job, stream);
      if (delivered) continue;
      done = std::move(delivered);
      // Damage of one stream holds up no other.
      if (done.error().kind != Kind::corrupt) return done;
    }
    return done;
  }
  for (const std::string& name : streams) {
    auto found = logs_.streams(region, job.source.group, name);
    if (!found && found.error().is(observe::LogResource::group)) return ok();
    if (!found) return std::move(found).error();
    const auto stream = std::ranges::find(*found, name, &observe::LogStreamInfo::name);
    if (stream != found->end()) TRY(deliver_stream(job, *stream));
  }
  return ok();
}

Result<void> Deliveries::deliver_stream(const Job& job, const observe::LogStreamInfo& stream) {
  const observe::StreamKey key{job.id.first, job.source.group, stream.name};
  const Instant since = job.delivery.created;
  if (!stream.last_ingestion || *stream.last_ingestion < since) return ok();
  Position position = TRY(load(job, stream.name));
  const int64_t created = to_milliseconds(stream.created);
  // A stream of the same name that was made later begins at its own beginning.
  if (position.stream_created != created) position = {.at = 0, .stream_created = created};
  observe::ReadQuery query{.events_max = kPageEvents,
                           .bytes_max = job.destination.type == DeliveryType::webhook
                                            ? settings_.post_bytes
                                            : settings_.page_bytes};
  if (position.known) query.position = position.at;
  for (;;) {
    if (stopping_) return cancelled("the server ends");
    auto page = TRY(logs_.read(key, query));
    if (page.events.empty()) return ok();
    const uint64_t end = page.end;
    std::erase_if(page.events,
                  [&](const observe::LogEvent& event) { return event.ingested < since; });
    if (!page.events.empty()) TRY(write(job, key, page));
    TRY(store(job, stream.name, {.at = end, .stream_created = created}));
    query.position = end;
  }
}

Result<Deliveries::Position> Deliveries::load(const Job& job, const std::string& stream) {
  const auto found =
      TRY(logs_.definitions().find(job.id.first, DefinitionKind::delivery_position,
                                   job.source.group, position_name(job.id.second, stream)));
  if (!found) return Position{};
  const auto stored = TRY(kPosition.read(TRY(parse_json(found->body))));
  return Position{stored.at, stored.stream_created, true};
}

Result<void> Deliveries::store(const Job& job, const std::string& stream,
                               const Position& position) {
  const std::string body = dump(kPosition.write({position.at, position.stream_created}));
  return logs_.definitions().put(job.id.first, DefinitionKind::delivery_position,
                                 {job.source.group, position_name(job.id.second, stream), body},
                                 kPositionsMax);
}

// Retention removes streams, and their positions would stay forever.
Result<void> Deliveries::forget_removed_streams(
    const Job& job, const std::vector<observe::LogStreamInfo>& streams) {
  const std::string start = position_name(job.id.second, "");
  for (const auto& each : TRY(logs_.definitions().list(
           job.id.first, DefinitionKind::delivery_position, job.source.group))) {
    if (!each.name.starts_with(start)) continue;
    const std::string name = each.name.substr(start.size());
    if (std::ranges::find(streams, name, &observe::LogStreamInfo::name) == streams.end())
      TRY(logs_.definitions().remove(job.id.first, DefinitionKind::delivery_position,
                                     job.source.group, each.name));
  }
  return ok();
}

// A delivery that was removed while it was in progress has stored positions since.
Result<void> Deliveries::forget_removed_deliveries() {
  std::set<Id> removed;
  for (const auto& [region, each] : TRY(logs_.definitions().all(DefinitionKind::delivery_position)))
    removed.emplace(region, each.name.substr(0, each.name.find(' ')));
  for (const auto& [region, each] : TRY(logs_.definitions().all(DefinitionKind::delivery)))
    removed.erase({region, each.name});
  for (const auto& [region, id] : removed)
    TRY(logs_.definitions().remove_all(region, DefinitionKind::delivery_position,
                                       position_name(id, "")));
  return ok();
}

// -- writing

Result<void> Deliveries::write(const Job& job, const observe::StreamKey& key,
                               const observe::LogPage& page) {
  if (job.destination.type == DeliveryType::s3) return write_object(job, key, page);
  if (job.destination.type == DeliveryType::log_group) return write_events(job, key, page);
  return post_events(job, key, page);
}

Result<void> Deliveries::write_object(const Job& job, const observe::StreamKey& key,
                                      const observe::LogPage& page) {
  const auto place = TRY(bucket_place(job.destination.resource_arn));
  const DeliveryOptions& options = job.delivery.options;
  const DeliveryFormat format = job.destination.format.value_or(DeliveryFormat::plain);
  std::string text;
  for (const observe::LogEvent& event : page.events)
    text += record_text(key, event, format, options) + "\n";
  const std::string name = object_key({.prefix = place.prefix,
                                       .account = targets_.account(),
                                       .service = job.service,
                                       .region = job.id.first,
                                       .delivery = job.id.second,
                                       .suffix = options.suffix,
                                       .hive_path = options.hive_path,
                                       .at = page.events.front().at,
                                       .stream = key.stream,
                                       .position = page.begin});
  TRY(objects::write_all(objects_, place.bucket, name, gzip(text),
                         {.content_type = "application/gzip", .owner = job.delivery.owner})
          .in("writing " + name + " to bucket " + place.bucket));
  return ok();
}

Result<void> Deliveries::write_events(const Job& job, const observe::StreamKey& key,
                                      const observe::LogPage& page) {
  const auto to = targets_.group_of(job.destination.resource_arn);
  if (!to) return not_found("the log group " + job.destination.resource_arn + " does not exist");
  const DeliveryFormat format = job.destination.format.value_or(DeliveryFormat::plain);
  std::vector<observe::LogEvent> events;
  events.reserve(page.events.size());
  for (const observe::LogEvent& event : page.events)
    events.push_back({event.at, {}, record_text(key, event, format, job.delivery.options)});
  return forward_events(logs_, {to->region, to->group, key.stream}, events)
      .in("writing to log group " + to->group);
}

// The request of a Firehose stream to an HTTP endpoint.
Result<void> Deliveries::post_events(const Job& job, const observe::StreamKey& key,
                                     const observe::LogPage& page) {
  const auto target = targets_.find(job.destination.resource_arn);
  const Webhook* webhook = target ? targets_.webhook(target->webhook) : nullptr;
  if (!webhook)
    return not_found("the configuration has no webhook for " + job.destination.resource_arn);
  const DeliveryFormat format = job.destination.format.value_or(DeliveryFormat::plain);
  Json records = Json::array();
  for (const observe::LogEvent& event : page.events)
    records.push_back(
        {{"data", to_base64(record_text(key, event, format, job.delivery.options) + "\n")}});
  const std::string body = dump(
      {{"requestId", job.id.second + "-" + to_hex(key.stream) + "-" + std::to_string(page.begin)},
       {"timestamp", to_milliseconds(clock_.now())},
       {"records", std::move(records)}});
  const int status = TRY(post_(*webhook, body).in("sending to webhook " + webhook->name));
  if (status < 200 || status >= 300)
    return unavailable("webhook " + webhook->name + " answers with status " +
                       std::to_string(status));
  return ok();
}

}  // namespace trainyard::log_routing

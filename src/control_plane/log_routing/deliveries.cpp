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
// The limit on positions of one log group: enough for each stream in many deliveries.
constexpr size_t kPositionsMax = 10'000'000;
// The limit on the bytes of the records of a page, as a multiple of the page's limit. Records may
// be longer than events: fields may repeat parts of a message, and JSON writes a control character
// as six characters.
constexpr size_t kRecordGrowthMax = 4;

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

bool Deliveries::Job::has_same_settings(const Job& other) const {
  return delivery.text() == other.delivery.text() &&
         destination.text() == other.destination.text() && source.group == other.source.group &&
         source.stream_prefix == other.source.stream_prefix;
}

Deliveries::Deliveries(observe::Logs& logs, objects::Objects& objects, const LogTargets& targets,
                       std::vector<ExternalSource> external, Post post, Clock& clock,
                       Random& random, DeliveriesSettings settings)
    : logs_(logs),
      objects_(objects),
      targets_(targets),
      post_(std::move(post)),
      clock_(clock),
      settings_(settings),
      catalogue_(logs, objects, targets, std::move(external), random) {}

Result<std::unique_ptr<Deliveries>> Deliveries::start(observe::Logs& logs,
                                                      objects::Objects& objects,
                                                      const LogTargets& targets,
                                                      std::vector<ExternalSource> external,
                                                      Post post, Clock& clock, Random& random,
                                                      DeliveriesSettings settings) {
  std::unique_ptr<Deliveries> made(new Deliveries(logs, objects, targets, std::move(external),
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

Result<std::shared_ptr<const Deliveries::Job>> Deliveries::job_of(
    const std::string& region, const observe::LogDefinition& stored) {
  auto job = std::make_shared<Job>();
  job->id = {region, stored.name};
  job->delivery = TRY(LogDelivery::from(stored.body));
  auto source = catalogue_.source(region, job->delivery.source);
  if (!source && source.error().kind != Kind::not_found) return std::move(source).error();
  auto destination = catalogue_.destination(region, job->delivery.destination);
  if (!destination && destination.error().kind != Kind::not_found)
    return std::move(destination).error();
  const auto streams = source ? catalogue_.streams_of(region, *source) : std::nullopt;
  if (!streams || !destination) {
    log(Level::error, "log_routing",
        "a delivery does not run, since its source or destination was deleted",
        {{"delivery", stored.name}, {"source", job->delivery.source}});
    return std::shared_ptr<const Job>();
  }
  job->service = DeliveryCatalogue::service_of(*source);
  job->source = *streams;
  job->destination = *std::move(destination);
  return std::shared_ptr<const Job>(std::move(job));
}

Result<void> Deliveries::reload() {
  const MutexLock reloading(reloading_);
  std::map<Id, std::shared_ptr<const Job>> jobs;
  for (const auto& [region, stored] : TRY(logs_.definitions().all(DefinitionKind::delivery)))
    if (auto job = TRY(job_of(region, stored))) jobs.emplace(job->id, job);
  const MutexLock lock(mutex_);
  std::erase_if(progress_, [&](const auto& each) { return !jobs.contains(each.first); });
  for (const auto& [id, job] : jobs) {
    Progress& progress = progress_[id];
    if (progress.job && progress.job->has_same_settings(*job)) continue;
    progress.job = job;
    progress.all = true;
    progress.due = {};
    progress.pause = {};
  }
  changed_.notify_all();
  return ok();
}

// The definition is removed before the positions. Otherwise a run in progress could find no
// position and deliver the stream from its beginning again. Positions that this run still stores
// are removed by work().
Result<void> Deliveries::remove(const std::string& region, const std::string& id) {
  {
    const MutexLock reloading(reloading_);
    TRY(catalogue_.remove(region, id));
    const MutexLock lock(mutex_);
    progress_.erase({region, id});
    changed_.notify_all();
  }
  forget_if_removed({region, id});
  return ok();
}

void Deliveries::notify(const observe::StreamKey& key) {
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
  Progress* next = nullptr;
  for (auto& [id, progress] : progress_)
    if (progress.job->destination.type == type && !progress.idle() && !progress.busy &&
        now >= progress.due && (!next || progress.last_run < next->last_run))
      next = &progress;
  return next;
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
      next->last_run = ++runs_;
    }
    const auto done = run(*job, all, streams);
    {
      const MutexLock lock(mutex_);
      finish(*job, done, all, std::move(streams));
      if (progress_.contains(job->id)) continue;
    }
    forget_if_removed(job->id);
  }
}

void Deliveries::finish(const Job& job, const Result<void>& done, bool all,
                        std::set<std::string> streams) {
  changed_.notify_all();
  const auto found = progress_.find(job.id);
  if (found == progress_.end()) return;  // the delivery was removed
  Progress& progress = found->second;
  progress.busy = false;
  if (progress.job.get() != &job) return;  // the delivery was changed, and runs again
  if (done) {
    progress.pause = {};
    progress.due = progress.job->destination.type == DeliveryType::s3
                       ? clock_.monotonic() + settings_.object_interval
                       : std::chrono::nanoseconds{};
    return;
  }
  progress.all |= all;
  progress.streams.merge(streams);
  // Only the first of consecutive failures is logged.
  if (progress.pause == Duration{} && !stopping_)
    log(Level::warning, "log_routing", "a delivery of logs failed; retrying later",
        {{"delivery", job.id.second}, {"why", done.error().message}});
  progress.pause = std::clamp(progress.pause * 2, settings_.first_pause, settings_.pause_max);
  progress.due = clock_.monotonic() + progress.pause;
}

bool Deliveries::is_current(const Job& job) {
  const MutexLock lock(mutex_);
  const auto found = progress_.find(job.id);
  return found != progress_.end() && found->second.job.get() == &job;
}

// Returns the streams of the source that a run reads; none if the group does not exist.
Result<std::vector<observe::LogStreamInfo>> Deliveries::streams_of(
    const Job& job, bool all, const std::set<std::string>& streams) {
  const std::string& region = job.id.first;
  std::vector<observe::LogStreamInfo> out;
  const auto add = [&](const std::string& prefix) -> Result<void> {
    auto found = logs_.streams(region, job.source.group, prefix);
    if (!found && found.error().is(observe::LogResource::group)) return ok();
    if (!found) return std::move(found).error();
    if (all) TRY(forget_removed_streams(job, *found));
    for (observe::LogStreamInfo& each : *found)
      if (all || each.name == prefix) out.push_back(std::move(each));
    return ok();
  };
  if (all) {
    TRY(add(job.source.stream_prefix));
  } else {
    for (const std::string& name : streams) TRY(add(name));
  }
  return out;
}

Result<void> Deliveries::run(const Job& job, bool all, const std::set<std::string>& streams) {
  Result<void> done;
  for (const auto& stream : TRY(streams_of(job, all, streams))) {
    auto delivered = deliver_stream(job, stream);
    if (delivered) continue;
    done = std::move(delivered);
    // A damaged stream, or a position that became invalid through damage, does not block the other
    // streams.
    if (done.error().kind != Kind::corrupt && done.error().kind != Kind::invalid) return done;
  }
  return done;
}

Result<void> Deliveries::deliver_stream(const Job& job, const observe::LogStreamInfo& stream) {
  const observe::StreamKey key{job.id.first, job.source.group, stream.name};
  if (!stream.last_ingestion || *stream.last_ingestion < job.delivery.created) return ok();
  if (!is_current(job)) return ok();
  Position position = TRY(load(job, stream.name));
  const int64_t created = to_milliseconds(stream.created);
  // If the stream was removed and created again, it is read from its beginning.
  if (position.stream_created != created) position = {.at = 0, .stream_created = created};
  // The run ends at this position, even if the stream grows; later events belong to the next run.
  const uint64_t until = TRY(logs_.read(key, {.forward = false, .events_max = 1})).end;
  observe::ReadQuery query{.events_max = kPageEvents,
                           .bytes_max = job.destination.type == DeliveryType::webhook
                                            ? settings_.post_bytes
                                            : settings_.page_bytes};
  if (position.known) query.position = position.at;
  for (;;) {
    if (stopping_) return cancelled("the server ends");
    if (!is_current(job)) return ok();
    const auto page = TRY(logs_.read(key, query));
    if (page.events.empty()) return ok();
    const Batch batch = batch_of(job, key, page, query.bytes_max * kRecordGrowthMax);
    if (batch.taken < page.events.size()) {
      query.events_max = batch.taken;  // the page is read again, with fewer events
      continue;
    }
    if (!batch.records.empty()) TRY(write(job, key, batch));
    TRY(store(job, stream.name, {.at = page.end, .stream_created = created}));
    if (page.end >= until) return ok();
    query.position = page.end;
    query.events_max = kPageEvents;
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

// Removes the positions of streams that retention has removed; they would stay forever.
Result<void> Deliveries::forget_removed_streams(
    const Job& job, const std::vector<observe::LogStreamInfo>& streams) {
  std::set<std::string_view> names;
  for (const auto& each : streams) names.insert(each.name);
  const std::string start = position_name(job.id.second, "");
  for (const auto& each : TRY(logs_.definitions().list(
           job.id.first, DefinitionKind::delivery_position, job.source.group))) {
    if (stopping_) return cancelled("the server ends");
    if (each.name.starts_with(start) &&
        !names.contains(std::string_view(each.name).substr(start.size())))
      TRY(logs_.definitions().remove(job.id.first, DefinitionKind::delivery_position,
                                     job.source.group, each.name));
  }
  return ok();
}

// Removes the positions of a delivery that is no longer defined. After an error, they are removed
// at the next start.
void Deliveries::forget_if_removed(const Id& id) {
  const auto found = catalogue_.delivery(id.first, id.second);
  if (found || found.error().kind != Kind::not_found) return;
  const auto removed = logs_.definitions().remove_all(id.first, DefinitionKind::delivery_position,
                                                      position_name(id.second, ""));
  if (!removed)
    log(Level::warning, "log_routing", "positions of a removed delivery stay until the next start",
        {{"delivery", id.second}, {"why", removed.error().message}});
}

// Removes the positions of deliveries that no longer exist. A delivery that was removed during a
// run may have stored positions afterwards.
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

// Makes a batch of the first events of the page whose records fit, and of at least one event.
// Events from before the creation of the delivery have no record.
Deliveries::Batch Deliveries::batch_of(const Job& job, const observe::StreamKey& key,
                                       const observe::LogPage& page, size_t bytes_max) {
  const DeliveryFormat format = job.destination.format.value_or(DeliveryFormat::plain);
  Batch batch{.begin = page.begin};
  size_t bytes = 0;
  for (const observe::LogEvent& event : page.events) {
    if (event.ingested >= job.delivery.created) {
      std::string text = record_text(key, event, format, job.delivery.options);
      bytes += text.size() + 1;
      if (bytes > bytes_max && !batch.records.empty()) break;
      batch.records.push_back({event.at, {}, std::move(text)});
    }
    ++batch.taken;
  }
  return batch;
}

Result<void> Deliveries::write(const Job& job, const observe::StreamKey& key, const Batch& batch) {
  if (job.destination.type == DeliveryType::s3) return write_object(job, key, batch);
  if (job.destination.type == DeliveryType::log_group) return write_events(job, key, batch);
  return post_events(job, key, batch);
}

Result<void> Deliveries::write_object(const Job& job, const observe::StreamKey& key,
                                      const Batch& batch) {
  const auto place = TRY(parse_bucket_arn(job.destination.resource_arn));
  const DeliveryOptions& options = job.delivery.options;
  std::string text;
  for (const observe::LogEvent& record : batch.records) text += record.message + "\n";
  const std::string name = object_key({.prefix = place.prefix,
                                       .account = targets_.account(),
                                       .service = job.service,
                                       .region = job.id.first,
                                       .delivery = job.id.second,
                                       .suffix = options.suffix,
                                       .hive_path = options.hive_path,
                                       .at = batch.records.front().at,
                                       .stream = key.stream,
                                       .position = batch.begin});
  TRY(objects::write_all(objects_, place.bucket, name, gzip(text),
                         {.content_type = "application/gzip", .owner = job.delivery.owner})
          .in("writing " + name + " to bucket " + place.bucket));
  return ok();
}

Result<void> Deliveries::write_events(const Job& job, const observe::StreamKey& key,
                                      const Batch& batch) {
  const auto to = targets_.group_of(job.destination.resource_arn);
  if (!to) return not_found("the log group " + job.destination.resource_arn + " does not exist");
  return forward_events(logs_, {to->region, to->group, key.stream}, batch.records)
      .in("writing to log group " + to->group);
}

// Sends the request that a Firehose stream sends to an HTTP endpoint.
Result<void> Deliveries::post_events(const Job& job, const observe::StreamKey& key,
                                     const Batch& batch) {
  const auto target = targets_.find(job.destination.resource_arn);
  const Webhook* webhook = target ? targets_.webhook(target->webhook) : nullptr;
  if (!webhook)
    return not_found("the configuration has no webhook for " + job.destination.resource_arn);
  Json records = Json::array();
  for (const observe::LogEvent& record : batch.records)
    records.push_back({{"data", to_base64(record.message + "\n")}});
  const std::string body = dump(
      {{"requestId", job.id.second + "-" + to_hex(key.stream) + "-" + std::to_string(batch.begin)},
       {"timestamp", to_milliseconds(clock_.now())},
       {"records", std::move(records)}});
  const int status = TRY(post_(*webhook, body).in("sending to webhook " + webhook->name));
  if (status < 200 || status >= 300)
    return unavailable("webhook " + webhook->name + " returned status " + std::to_string(status));
  return ok();
}

}  // namespace trainyard::log_routing

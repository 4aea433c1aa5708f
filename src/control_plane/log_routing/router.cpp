#include "log_routing/router.hpp"

#include <algorithm>
#include <cstdio>

#include "base/log.hpp"

namespace trainyard::log_routing {
namespace {

constexpr size_t kEventBytes = 64;  // of an event in the queue, in addition to its message
// The limit on the bytes of events in one message. As on AWS, a message stays below 1 MiB.
constexpr size_t kMessageBytesMax = 512 << 10;

size_t bytes_of(const std::vector<observe::LogEvent>& events) {
  size_t bytes = 0;
  for (const auto& event : events) bytes += event.message.size() + kEventBytes;
  return bytes;
}

std::string event_id(uint64_t number, Instant at) {
  char id[64];
  std::snprintf(id, sizeof id, "%020llu%036llu",
                static_cast<unsigned long long>(to_milliseconds(at)),
                static_cast<unsigned long long>(number));
  return id;
}

}  // namespace

LogRouter::LogRouter(observe::Logs& logs, observe::Metrics& metrics, Clock& clock, Post post,
                     RouterSettings settings)
    : logs_(logs),
      metrics_(metrics),
      clock_(clock),
      settings_(std::move(settings)),
      targets_(settings_.account, settings_.webhooks),
      destinations_(logs.definitions(), targets_) {
  for (const Webhook& webhook : settings_.webhooks)
    deliveries_.emplace(webhook.name,
                        std::make_unique<Delivery>(webhook, post, clock_, settings_.delivery));
}

Result<std::unique_ptr<LogRouter>> LogRouter::start(observe::Logs& logs, observe::Metrics& metrics,
                                                    Clock& clock, Post post,
                                                    RouterSettings settings) {
  std::unique_ptr<LogRouter> router(
      new LogRouter(logs, metrics, clock, std::move(post), std::move(settings)));
  TRY(router->reload());
  router->thread_ = std::thread([router = router.get()] { router->work(); });
  return router;
}

LogRouter::~LogRouter() { stop(); }

void LogRouter::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Result<void> LogRouter::reload() {
  const MutexLock reloading(reloading_);
  auto fresh = std::make_shared<Definitions>();
  observe::LogDefinitions& stored = logs_.definitions();
  for (auto& [region, each] : TRY(stored.all(observe::DefinitionKind::metric_filter)))
    fresh->metrics[{region, each.group}][each.name] = std::move(each.body);
  for (auto& [region, each] : TRY(stored.all(observe::DefinitionKind::subscription_filter)))
    fresh->subscriptions[{region, each.group}][each.name] = std::move(each.body);
  for (auto& [region, each] : TRY(stored.all(observe::DefinitionKind::destination)))
    fresh->destinations[{region, each.name}] = std::move(each.body);
  const MutexLock lock(mutex_);
  definitions_ = std::move(fresh);
  fresh_ = true;
  changed_.notify_all();
  return ok();
}

RouterCounts LogRouter::counts() {
  const MutexLock lock(mutex_);
  return counts_;
}

bool LogRouter::drain(Duration at_most) {
  {
    MutexLock lock(mutex_);
    if (!changed_.wait_for(lock, at_most,
                           [&]() REQUIRES(mutex_) { return queue_.empty() && !busy_ && !fresh_; }))
      return false;
  }
  return std::ranges::all_of(deliveries_,
                             [&](const auto& each) { return each.second->drain(at_most); });
}

void LogRouter::enqueue(const observe::StreamKey& key,
                        const std::vector<observe::LogEvent>& events) {
  const GroupName group{key.region, key.group};
  uint64_t dropped = 0;
  {
    const MutexLock lock(mutex_);
    if (!definitions_->metrics.contains(group) && !definitions_->subscriptions.contains(group))
      return;
    const size_t bytes = bytes_of(events);
    if (queue_bytes_ + bytes <= settings_.queue_bytes_max) {
      queue_bytes_ += bytes;
      queue_.push_back({key, events, bytes, is_forwarding()});
      changed_.notify_all();
      return;
    }
    counts_.dropped += events.size();
    const auto now = clock_.monotonic();
    if (now < report_at_) return;
    report_at_ = now + settings_.report_interval;
    dropped = counts_.dropped;
  }
  log(Level::warning, "log_routing",
      "dropped log events, since they arrive faster than the filters of groups are applied",
      {{"events", std::to_string(dropped)}, {"group", key.group}});
}

void LogRouter::work() {
  for (;;) {
    std::shared_ptr<const Definitions> fresh;
    std::optional<Batch> batch;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock, settings_.tick,
                        [&]() REQUIRES(mutex_) { return stopping_ || fresh_ || !queue_.empty(); });
      if (stopping_) return;
      if (std::exchange(fresh_, false)) fresh = definitions_;
      if (!queue_.empty()) {
        batch = std::move(queue_.front());
        queue_.pop_front();
        queue_bytes_ -= batch->bytes;
      }
      busy_ = true;
    }
    if (fresh) apply_definitions(*fresh);
    if (batch) route(*batch);
    finish_minutes();
    const MutexLock lock(mutex_);
    if (batch) counts_.events += batch->events.size();
    busy_ = false;
    changed_.notify_all();
  }
}

// If the definition of a filter has not changed, its publisher keeps its series and pending
// minutes.
void LogRouter::apply_definitions(const Definitions& definitions) {
  std::map<GroupName, GroupFilters> next;
  const auto report = [](const GroupName& group, const std::string& name, const Error& error) {
    log(Level::error, "log_routing", "ignored a filter of a log group",
        {{"group", group.group}, {"filter", name}, {"why", error.message}});
  };
  for (const auto& [group, filters] : definitions.metrics) {
    auto& before = filters_[group].metrics;
    for (const auto& [name, text] : filters) {
      if (const auto found = before.find(name);
          found != before.end() && found->second.first == text) {
        next[group].metrics.insert(before.extract(found));
        continue;
      }
      const auto filter = MetricFilter::from(text);
      auto publisher = filter ? MetricPublisher::make(group.region, *filter)
                              : Result<MetricPublisher>(filter.error());
      if (publisher)
        next[group].metrics.emplace(name, std::pair(text, *std::move(publisher)));
      else
        report(group, name, publisher.error());
    }
  }
  for (const auto& [group, filters] : definitions.subscriptions) {
    for (const auto& [name, text] : filters) {
      if (auto subscription = subscription_of(definitions, group, name, text))
        next[group].subscriptions.push_back(*std::move(subscription));
      else
        report(group, name, subscription.error());
    }
  }
  filters_ = std::move(next);
}

Result<LogRouter::Subscription> LogRouter::subscription_of(const Definitions& definitions,
                                                           const GroupName& group,
                                                           const std::string& name,
                                                           const std::string& text) {
  const auto filter = TRY(SubscriptionFilter::from(text));
  auto pattern = TRY(observe::FilterPattern::parse(filter.pattern));
  LogTarget target{.webhook = filter.target};
  if (target.webhook.empty()) {
    std::string arn = filter.destination_arn;
    if (const auto named = targets_.destination_of(group.region, arn)) {
      const auto found = definitions.destinations.find({group.region, *named});
      if (found != definitions.destinations.end())
        arn = TRY(LogDestination::from(found->second)).target_arn;
    }
    auto leads_to = targets_.find(arn);
    if (!leads_to) return not_found("the destination " + arn + " does not exist");
    target = *std::move(leads_to);
  }
  const auto delivery = deliveries_.find(target.webhook);
  if (!target.webhook.empty() && delivery == deliveries_.end())
    return not_found("the configuration has no webhook '" + target.webhook + "'");
  return Subscription{name, std::move(pattern),
                      target.webhook.empty() ? nullptr : delivery->second.get(),
                      std::move(target.group)};
}

void LogRouter::publish(std::vector<observe::MetricRecord>& records) {
  if (records.empty()) return;
  // Samples of a namespace that has reached its limit are left out; the others are stored.
  if (const auto kept = metrics_.append_allowed(records); !kept)
    log(Level::error, "log_routing", "cannot store samples of metric filters",
        {{"samples", std::to_string(records.size())}, {"why", kept.error().message}});
  records.clear();
}

void LogRouter::route(const Batch& batch) {
  const auto found = filters_.find({batch.key.region, batch.key.group});
  if (found == filters_.end()) return;
  const Instant now = clock_.now();
  std::vector<observe::MetricRecord> records;
  for (auto& [name, filter] : found->second.metrics) {
    MetricPublisher& publisher = filter.second;
    const bool dropped_before = publisher.dropped() > 0;
    publisher.add(batch.events, now, records);
    if (publisher.dropped() > 0 && !dropped_before)
      log(Level::warning, "log_routing",
          "a metric filter has reached the limit on its series; dropping events that need others",
          {{"group", batch.key.group}, {"filter", name}, {"series", std::to_string(kSeriesMax)}});
  }
  publish(records);
  for (const Subscription& subscription : found->second.subscriptions) {
    if (subscription.delivery)
      send(batch, subscription);
    else if (!batch.forwarded)
      forward(batch, subscription);
  }
}

void LogRouter::forward(const Batch& batch, const Subscription& subscription) {
  std::vector<observe::LogEvent> events;
  for (const observe::LogEvent& event : batch.events)
    if (subscription.pattern.matches(event.message))
      events.push_back({event.at, {}, event.message});
  if (events.empty()) return;
  const auto& [region, group] = subscription.group;
  const auto done = forward_events(logs_, {region, group, batch.key.stream}, events);
  if (done || clock_.monotonic() < forward_report_at_) return;
  forward_report_at_ = clock_.monotonic() + settings_.report_interval;
  log(Level::warning, "log_routing", "cannot forward events of a subscription filter",
      {{"group", batch.key.group},
       {"filter", subscription.name},
       {"to", group},
       {"why", done.error().message}});
}

void LogRouter::send(const Batch& batch, const Subscription& subscription) {
  Envelope envelope{settings_.account, batch.key.group, batch.key.stream, subscription.name, {}};
  size_t bytes = 0;
  const auto flush = [&] {
    if (!envelope.events.empty()) subscription.delivery->add(encode_message(envelope));
    envelope.events.clear();
    bytes = 0;
  };
  for (const observe::LogEvent& event : batch.events) {
    if (!subscription.pattern.matches(event.message)) continue;
    envelope.events.emplace_back(event_id(++message_number_, event.at), event);
    bytes += event.message.size() + kEventBytes;
    if (bytes >= kMessageBytesMax) flush();
  }
  flush();
}

void LogRouter::finish_minutes() {
  std::vector<observe::MetricRecord> records;
  const Instant now = clock_.now();
  for (auto& [group, filters] : filters_)
    for (auto& [name, filter] : filters.metrics) filter.second.finish_minutes(now, records);
  publish(records);
}

}  // namespace trainyard::log_routing

#include "alarms/loop.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "metric_math/query.hpp"

namespace trainyard::alarms {
namespace {

constexpr Duration kTick = 500ms;  // between two searches for alarms and actions that are due
constexpr Duration kRetireInterval = 1h;
constexpr size_t kErrorBytesMax = 500;  // of an error in the history

std::vector<metric_math::Query> queries_of(const Alarm& alarm, std::string& fault) {
  std::vector<metric_math::Query> out;
  for (const WatchedQuery& each : alarm.settings.queries) {
    metric_math::Query query{.id = each.id, .expression = each.expression};
    if (each.metric) {
      auto statistic = metric_math::parse_statistic(each.metric->statistic);
      if (!statistic) fault = statistic.error().message;
      query.metric = metric_math::MetricSelection{
          .key = {alarm.key.region,
                  each.metric->name_space,
                  each.metric->name,
                  {each.metric->dimensions.begin(), each.metric->dimensions.end()}},
          .statistic = statistic ? *statistic : metric_math::Statistic{},
          .period = each.metric->period,
          .unit = each.metric->unit};
    }
    out.push_back(std::move(query));
  }
  return out;
}

// Makes a range of datapoints from the series that an alarm watches, and from the lower and upper
// series of its band.
std::vector<Datapoint> datapoints_of(const std::vector<metric_math::Series>& watched,
                                     const std::vector<metric_math::Series>& band,
                                     const Range& range, Duration period) {
  const auto value_at = [](const metric_math::Series& series, Instant at) -> std::optional<double> {
    const auto found = std::ranges::lower_bound(series.points, at, {}, &metric_math::Point::at);
    if (found == series.points.end() || found->at != at) return {};
    return found->value;
  };
  std::vector<Datapoint> out;
  for (Instant at = range.from; at < range.to; at += period) {
    Datapoint point{.at = at};
    if (!watched.empty()) point.value = value_at(watched[0], at);
    if (band.size() == 2) {
      const auto low = value_at(band[0], at), high = value_at(band[1], at);
      if (low && high) point.band = Bounds{*low, *high};
    }
    out.push_back(point);
  }
  return out;
}

// Returns the alarm of the rule whose state changed last.
const Alarm* last_changed(const Rule& rule, const AlarmKey& of, const Alarms& all) {
  const Alarm* last = nullptr;
  for (const std::string& name : rule.alarms()) {
    const auto found = all.find({of.region, name});
    if (found == all.end()) continue;
    if (!last || found->second->state.transitioned > last->state.transitioned)
      last = found->second.get();
  }
  return last;
}

}  // namespace

Duration retry_wait(int64_t attempts) {
  // Ten doublings of a second exceed the limit.
  const int64_t doublings = std::clamp<int64_t>(attempts - 1, 0, 10);
  return std::min(kRetryWaitMin * (int64_t{1} << doublings), kRetryWaitMax);
}

AlarmLoop::AlarmLoop(AlarmStore& store, observe::Metrics& metrics, Clock& clock,
                     const AlarmTexts& texts, Sink sink, std::function<std::string()> why_not)
    : store_(store),
      metrics_(metrics),
      clock_(clock),
      texts_(texts),
      sink_(std::move(sink)),
      why_not_(std::move(why_not)) {
  pool_.emplace(kActionsAtOnceMax);
}

AlarmLoop::~AlarmLoop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  pool_.reset();
}

void AlarmLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void AlarmLoop::run() {
  Instant retired{};
  for (;;) {
    const Instant now = clock_.now();
    if (why_not_().empty()) {
      evaluate(now);
      act(now);
      if (now >= retired + kRetireInterval) {
        retired = now;
        if (const auto done = store_.retire(now); !done)
          log(Level::warning, "alarms", "cannot remove old history; it is retried later",
              {{"why", done.error().message}});
      }
    }
    MutexLock lock(mutex_);
    if (stopping_) return;
    changed_.wait_for(lock, kTick);
    if (stopping_) return;
  }
}

void AlarmLoop::evaluate(Instant now) {
  const auto all = store_.snapshot();
  std::erase_if(evaluated_, [&](const auto& each) { return !all->contains(each.first); });
  for (const auto& [key, alarm] : *all) {
    if (stopping()) return;
    if (alarm->settings.kind != AlarmKind::metric) continue;
    Instant& evaluated = evaluated_[key];
    const Instant since = std::max(evaluated, alarm->state.updated);
    // If the clock was set back, `since` is in the future, and the alarm is evaluated now.
    if (since <= now && now < since + evaluation_interval(alarm->settings)) continue;
    evaluated = now;
    Result<void> done = ok();
    try {
      done = evaluate_metric(*alarm, now);
    } catch (const std::exception& fault) {
      done = internal("the evaluation threw: " + std::string(fault.what()));
    }
    if (!done)
      log(Level::warning, "alarms", "cannot evaluate an alarm; it is retried later",
          {{"alarm", key.name}, {"region", key.region}, {"why", done.error().message}});
  }
  evaluate_composites(now);
}

Result<void> AlarmLoop::evaluate_metric(const Alarm& alarm, Instant now) {
  const AlarmSettings& settings = alarm.settings;
  const Range range = evaluation_range(settings, now);
  std::string fault;
  const auto queries = queries_of(alarm, fault);
  if (!fault.empty()) return invalid(fault);
  std::vector<std::string> wanted{settings.watched_id};
  if (!settings.threshold_id.empty()) wanted.push_back(settings.threshold_id);
  const auto series = TRY(metric_math::evaluate(metrics_, queries, wanted, {range.from, range.to}));
  const auto datapoints =
      datapoints_of(series.at(settings.watched_id),
                    settings.threshold_id.empty() ? std::vector<metric_math::Series>()
                                                  : series.at(settings.threshold_id),
                    range, settings.period());
  const Evaluation evaluation = evaluate_alarm(settings, datapoints, alarm.state.value);
  if (evaluation.state == alarm.state.value) return ok();
  TRY(enter(alarm, evaluation.state, texts_.reason(alarm, evaluation, range, now), now));
  return ok();
}

bool AlarmLoop::stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

const Rule* AlarmLoop::rule_of(const Alarm& alarm) {
  const auto known = rules_.find(alarm.key);
  if (known != rules_.end() && known->second.text == alarm.settings.rule)
    return &known->second.rule;
  auto rule = Rule::parse(alarm.settings.rule);
  if (!rule) {
    log(Level::warning, "alarms", "cannot parse the rule of a composite alarm",
        {{"alarm", alarm.key.name}, {"region", alarm.key.region}, {"why", rule.error().message}});
    return nullptr;
  }
  ParsedRule parsed{alarm.settings.rule, *std::move(rule)};
  return &rules_.insert_or_assign(alarm.key, std::move(parsed)).first->second.rule;
}

// Visits the alarms depth first; rules have no cycles. It uses a stack instead of recursion, since
// a chain may contain all alarms.
void AlarmLoop::evaluate_composites(Instant now) {
  const auto all = store_.snapshot();
  if (all == settled_) return;
  std::erase_if(rules_, [&](const auto& each) { return !all->contains(each.first); });
  struct Visit {
    const Alarm* alarm;
    bool children_done;
  };
  std::vector<Visit> visits;
  std::set<const Alarm*> seen;
  bool settled = true;
  for (const auto& [key, alarm] : *all) {
    if (alarm->settings.kind == AlarmKind::composite) visits.push_back({alarm.get(), false});
    while (!visits.empty()) {
      if (stopping()) return;
      const Visit visit = visits.back();
      visits.pop_back();
      if (!visit.children_done && !seen.insert(visit.alarm).second) continue;
      const Rule* rule = rule_of(*visit.alarm);
      if (!rule) continue;
      if (!visit.children_done) {
        visits.push_back({visit.alarm, true});
        for (const std::string& name : rule->alarms()) {
          const auto child = all->find({visit.alarm->key.region, name});
          if (child != all->end() && child->second->settings.kind == AlarmKind::composite)
            visits.push_back({child->second.get(), false});
        }
        continue;
      }
      const auto present = store_.snapshot();  // with the states that its children just entered
      const auto changed = evaluate_composite(*visit.alarm, *rule, *present, now);
      settled = settled && changed && !*changed && present == all;
      if (!changed)
        log(Level::warning, "alarms", "cannot evaluate a composite alarm; it is retried later",
            {{"alarm", visit.alarm->key.name},
             {"region", visit.alarm->key.region},
             {"why", changed.error().message}});
    }
  }
  if (settled) settled_ = all;
}

Result<bool> AlarmLoop::evaluate_composite(const Alarm& alarm, const Rule& rule, const Alarms& all,
                                           Instant now) {
  const bool holds = rule.holds([&](const std::string& name) {
    const auto found = all.find({alarm.key.region, name});
    return found == all.end() ? State::insufficient_data : found->second->state.value;
  });
  const State next = holds ? State::alarm : State::ok;
  if (next == alarm.state.value) return false;
  return enter(alarm, next,
               texts_.composite_reason(alarm, next, last_changed(rule, alarm.key, all), now), now);
}

// If the alarm has changed since it was read, its state is not set, and it is evaluated again
// later.
Result<bool> AlarmLoop::enter(const Alarm& alarm, State next, const Texts& reason, Instant now) {
  bool entered = false;
  TRY(store_.change([&](const Alarms& present) -> Result<Change> {
    const auto found = present.find(alarm.key);
    if (found == present.end() || found->second->configured != alarm.configured ||
        found->second->state != alarm.state)
      return Change{};
    entered = true;
    return transition(*found->second, {next, reason.text, reason.data, now, {}}, texts_);
  }));
  return entered;
}

void AlarmLoop::act(Instant now) {
  const auto due = store_.due_actions(now, int64_t(kActionsAtOnceMax) * 2);
  if (!due)
    return log(Level::warning, "alarms", "cannot read pending actions; it is retried later",
               {{"why", due.error().message}});
  for (const PendingAction& each : *due) {
    {
      const MutexLock lock(mutex_);
      if (busy_.size() == kActionsAtOnceMax) return;
      if (!busy_.insert(each.target).second) continue;
    }
    const auto work = [this, each] {
      carry_out(each);
      const MutexLock lock(mutex_);
      busy_.erase(each.target);
      changed_.notify_all();
    };
    if (pool_->run(work)) continue;
    const MutexLock lock(mutex_);
    busy_.erase(each.target);
  }
}

// An event adds no item, since the change of the state that started it has one.
std::optional<HistoryItem> AlarmLoop::item_of(const PendingAction& action, const Result<void>& done,
                                              Instant now) const {
  if (action.target == kEventBus) return std::nullopt;
  const std::string error = done ? "" : shorten(done.error().message, kErrorBytesMax);
  const Texts item = texts_.action_item(action, error);
  return HistoryItem{action.alarm,        action.alarm_kind, now,
                     HistoryKind::action, item.text,         item.data};
}

void AlarmLoop::carry_out(const PendingAction& action) {
  Result<void> done = ok();
  try {
    done = sink_(action);
  } catch (const std::exception& fault) {
    done = internal("the action threw: " + std::string(fault.what()));
  }
  const Instant now = clock_.now();
  Result<void> stored = ok();
  const bool ends = done || done.error().kind == Kind::invalid ||
                    done.error().kind == Kind::not_found || done.error().kind == Kind::denied ||
                    now >= action.created + kRetryTime;
  if (ends) {
    stored = store_.end_action(action.number, item_of(action, done, now));
  } else {
    stored = store_.retry_action(action.number, action.attempts + 1,
                                 now + retry_wait(action.attempts + 1));
  }
  if (!done)
    log(Level::warning, "alarms",
        ends ? "an action failed" : "an action failed; it is retried later",
        {{"alarm", action.alarm.name}, {"target", action.target}, {"why", done.error().message}});
  if (!stored)
    log(Level::warning, "alarms", "cannot store the end of an action; it is carried out again",
        {{"alarm", action.alarm.name}, {"why", stored.error().message}});
}

}  // namespace trainyard::alarms

// Implements CloudWatch's alarm operations.
#include "shapes/cloudwatch.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "alarms/rule.hpp"
#include "alarms/store.hpp"
#include "alarms/transition.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cloudwatch/alarm_shapes.hpp"
#include "cloudwatch/alarm_texts.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/families.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;
using alarms::Alarm;
using alarms::AlarmKey;
using alarms::AlarmKind;
using alarms::Alarms;
using alarms::Change;

constexpr int64_t kPageMax = 100;

const CloudwatchTexts kTexts;

// Holds the API failure of a decision, which the store's change() cannot return.
struct Decision {
  std::optional<Failure> failure;
  Outcome<aws::Nothing> outcome(Result<void> stored) {
    if (failure) return *failure;
    if (!stored && stored.error().kind == Kind::exhausted)
      return Failure{400, "LimitExceeded", stored.error().message};
    if (!stored) return stored.error();
    return aws::Nothing{};
  }
};

// Runs a decision in a change of the store. If it fails, nothing changes.
Outcome<aws::Nothing> change(alarms::AlarmStore& store,
                             const std::function<Outcome<Change>(const Alarms&)>& decide) {
  Decision decision;
  return decision.outcome(store.change([&](const Alarms& present) -> Result<Change> {
    auto decided = decide(present);
    if (!decided) {
      decision.failure = decided.failure(aws::kService);
      return Change{};
    }
    return std::move(decided).value();
  }));
}

alarms::HistoryItem configuration_item(const Alarm& alarm, std::string_view verb, Instant now) {
  const bool composite = alarm.settings.kind == AlarmKind::composite;
  const std::string type(verb == "created" ? "Create" : verb == "deleted" ? "Delete" : "Update");
  Json data{{"version", "1.0"}, {"type", type}};
  data[verb == "deleted" ? "deletedAlarm" : "updatedAlarm"] = {
      {"alarmName", alarm.key.name}, {"alarmArn", alarm_arn(alarm.settings.account, alarm.key)}};
  return {
      alarm.key,
      alarm.settings.kind,
      now,
      alarms::HistoryKind::configuration,
      (composite ? "Composite alarm \"" : "Alarm \"") + alarm.key.name + "\" " + std::string(verb),
      dump(data)};
}

// Stores the settings of a new or an existing alarm. An existing alarm keeps its state and its
// tags.
Change put_settings(const Alarms& present, const AlarmKey& key, alarms::AlarmSettings settings,
                    Instant now) {
  Change change;
  const auto found = present.find(key);
  if (found == present.end()) {
    change.stored.push_back({key,
                             std::move(settings),
                             now,
                             {.reason = kInitialReason, .updated = now, .transitioned = now}});
  } else {
    settings.tags = found->second->settings.tags;
    // Each configuration has another time, so that an evaluation of an earlier one can be
    // discarded.
    change.stored.push_back({key, std::move(settings),
                             std::max(now, found->second->configured + 1ms), found->second->state});
  }
  change.history.push_back(
      configuration_item(change.stored[0], found == present.end() ? "created" : "updated", now));
  return change;
}

std::optional<Failure> check_kind(const Alarms& present, const AlarmKey& key, AlarmKind kind) {
  const auto found = present.find(key);
  if (found == present.end() || found->second->settings.kind == kind) return {};
  return validation_error("An alarm of another type has the name " + key.name + ".");
}

Outcome<aws::Nothing> put_metric_alarm(alarms::AlarmStore& store, const Context& context,
                                       const aws::PutMetricAlarmInput& in) {
  auto settings = TRY(to_settings(context, in));
  const AlarmKey key{context.region, *in.alarm_name};
  return change(store, [&](const Alarms& present) -> Outcome<Change> {
    if (auto failure = check_kind(present, key, AlarmKind::metric)) return *failure;
    return put_settings(present, key, settings, context.now);
  });
}

// Returns for each composite alarm of the region the alarms that its rule names.
std::map<std::string, std::set<std::string>> children_in(const Alarms& present,
                                                         const std::string& region) {
  std::map<std::string, std::set<std::string>> children;
  for (const auto& [key, alarm] : present) {
    if (key.region != region || alarm->settings.kind != AlarmKind::composite) continue;
    if (const auto rule = alarms::Rule::parse(alarm->settings.rule))
      children[key.name] = rule->alarms();
  }
  return children;
}

Outcome<aws::Nothing> put_composite_alarm(alarms::AlarmStore& store, const Context& context,
                                          const aws::PutCompositeAlarmInput& in) {
  auto settings = TRY(to_settings(context, in));
  const AlarmKey key{context.region, *in.alarm_name};
  const auto rule = TRY(alarms::Rule::parse(settings.rule));
  return change(store, [&](const Alarms& present) -> Outcome<Change> {
    if (auto failure = check_kind(present, key, AlarmKind::composite)) return *failure;
    std::string absent;
    for (const std::string& each : rule.alarms())
      if (each != key.name && !present.contains({context.region, each}))
        absent += (absent.empty() ? "" : ", ") + each;
    if (!absent.empty())
      return validation_error("Could not save the composite alarm as alarms [" +
                              shorten(absent, 500) + "] in the alarm rule do not exist");
    const std::string cycle =
        alarms::find_cycle(key.name, rule.alarms(), children_in(present, context.region));
    if (!cycle.empty())
      return validation_error(
          "Could not save the composite alarm as its rule would depend on "
          "itself: " +
          shorten(cycle, 500));
    return put_settings(present, key, settings, context.now);
  });
}

// -- descriptions

std::string token_of(const std::string& name) { return to_base64(name); }

Failure invalid_token() { return {400, "InvalidNextToken", "Invalid next token"}; }

bool has_action(const Alarm& alarm, const std::string& prefix) {
  for (const alarms::State state : enumerators<alarms::State>())
    for (const std::string& each : alarm.settings.actions.of(state))
      if (each.starts_with(prefix)) return true;
  return false;
}

std::optional<Failure> check_describe(const aws::DescribeAlarmsInput& in) {
  const bool relatives = in.children_of_alarm_name || in.parents_of_alarm_name;
  if (in.alarm_names && in.alarm_name_prefix)
    return Failure{400, "ValidationError",
                   "AlarmNames and AlarmNamePrefix cannot be used together."};
  if (relatives && (in.alarm_names || in.alarm_name_prefix || in.state_value || in.action_prefix ||
                    (in.children_of_alarm_name && in.parents_of_alarm_name)))
    return Failure{400, "ValidationError",
                   "ChildrenOfAlarmName and ParentsOfAlarmName cannot be used with other filters."};
  return {};
}

// Returns the names of an alarm's children or parents.
Outcome<std::set<std::string>> relatives_of(const Alarms& all, const std::string& region,
                                            const aws::DescribeAlarmsInput& in) {
  const std::string& name =
      in.children_of_alarm_name ? *in.children_of_alarm_name : *in.parents_of_alarm_name;
  if (!all.contains({region, name})) return not_found_failure("Unknown");
  auto children = children_in(all, region);
  if (in.children_of_alarm_name) return children[name];
  std::set<std::string> parents;
  for (const auto& [parent, of] : children)
    if (of.contains(name)) parents.insert(parent);
  return parents;
}

using Filter = std::function<bool(const Alarm&)>;

Outcome<Filter> filter_of(const Alarms& all, const Context& context,
                          const aws::DescribeAlarmsInput& in) {
  std::optional<std::set<std::string>> names;
  const bool relatives = in.children_of_alarm_name || in.parents_of_alarm_name;
  if (relatives)
    names = TRY(relatives_of(all, context.region, in));
  else if (in.alarm_names && !in.alarm_names->empty())
    names.emplace(in.alarm_names->begin(), in.alarm_names->end());
  const auto has_type = [&](std::string_view type) {
    return std::ranges::find(*in.alarm_types, type) != in.alarm_types->end();
  };
  const bool chosen = in.alarm_types && !in.alarm_types->empty();
  const bool metric = chosen ? has_type("MetricAlarm") : true;
  const bool composite = chosen ? has_type("CompositeAlarm") : relatives;
  return Filter([=, prefix = in.alarm_name_prefix.value_or(""), state = in.state_value.value_or(""),
                 action = in.action_prefix.value_or("")](const Alarm& alarm) {
    if (!(alarm.settings.kind == AlarmKind::metric ? metric : composite)) return false;
    if (names && !names->contains(alarm.key.name)) return false;
    return alarm.key.name.starts_with(prefix) &&
           (state.empty() || state == to_text(alarm.state.value)) &&
           (action.empty() || has_action(alarm, action));
  });
}

Outcome<aws::DescribeAlarmsOutput> describe(alarms::AlarmStore& store, const Context& context,
                                            const aws::DescribeAlarmsInput& in) {
  if (auto failure = check_describe(in)) return *failure;
  const auto all = store.snapshot();
  const Filter wanted = TRY(filter_of(*all, context, in));
  AlarmKey after{context.region, ""};
  if (in.next_token) {
    auto name = from_base64(*in.next_token);
    if (!name) return invalid_token();
    after.name = std::move(*name);
  }
  aws::DescribeAlarmsOutput out;
  out.metric_alarms.emplace();
  out.composite_alarms.emplace();
  const int64_t limit = in.max_records.value_or(kPageMax);
  int64_t count = 0;
  std::string last;
  for (auto at = all->upper_bound(after); at != all->end() && at->first.region == context.region;
       ++at) {
    const Alarm& alarm = *at->second;
    if (!wanted(alarm)) continue;
    if (count == limit) {
      out.next_token = token_of(last);
      break;
    }
    ++count;
    last = alarm.key.name;
    if (alarm.settings.kind == AlarmKind::metric)
      out.metric_alarms->push_back(to_metric_alarm(alarm));
    else
      out.composite_alarms->push_back(to_composite_alarm(alarm));
  }
  return out;
}

Outcome<aws::DescribeAlarmsForMetricOutput> describe_for_metric(
    alarms::AlarmStore& store, const Context& context,
    const aws::DescribeAlarmsForMetricInput& in) {
  const auto dimensions = to_map(in.dimensions);
  const auto watches = [&](const alarms::WatchedQuery& query) {
    if (!query.metric) return false;
    const alarms::WatchedMetric& metric = *query.metric;
    const std::map<std::string, std::string> own(metric.dimensions.begin(),
                                                 metric.dimensions.end());
    return metric.name == *in.metric_name && metric.name_space == *in.namespace_ &&
           own == dimensions && (!in.statistic || *in.statistic == metric.statistic) &&
           (!in.extended_statistic || *in.extended_statistic == metric.statistic) &&
           (!in.period || *in.period == metric.period / 1s) &&
           (!in.unit || *in.unit == metric.unit);
  };
  aws::DescribeAlarmsForMetricOutput out;
  out.metric_alarms.emplace();
  for (const auto& [key, alarm] : *store.snapshot())
    if (key.region == context.region && std::ranges::any_of(alarm->settings.queries, watches))
      out.metric_alarms->push_back(to_metric_alarm(*alarm));
  return out;
}

constexpr std::pair<alarms::HistoryKind, const char*> kHistoryNames[] = {
    {alarms::HistoryKind::configuration, "ConfigurationUpdate"},
    {alarms::HistoryKind::state, "StateUpdate"},
    {alarms::HistoryKind::action, "Action"}};

Outcome<alarms::HistoryQuery> history_query(const Context& context,
                                            const aws::DescribeAlarmHistoryInput& in) {
  alarms::HistoryQuery query{.region = context.region, .alarm = in.alarm_name.value_or("")};
  // As on AWS, composite alarms are shown only if requested.
  query.alarm_kinds = {AlarmKind::metric};
  if (in.alarm_types && !in.alarm_types->empty()) {
    query.alarm_kinds.clear();
    for (const std::string& each : *in.alarm_types)
      if (each != "LogAlarm")
        query.alarm_kinds.push_back(each == "CompositeAlarm" ? AlarmKind::composite
                                                             : AlarmKind::metric);
  }
  if (in.history_item_type) {
    const auto found =
        std::ranges::find(kHistoryNames, *in.history_item_type,
                          [](const auto& each) { return std::string_view(each.second); });
    if (found == std::end(kHistoryNames))
      return validation_error("HistoryItemType " + shorten(*in.history_item_type, 60) +
                              " is not supported.");
    query.kind = found->first;
  }
  query.from = in.start_date;
  query.to = in.end_date;
  query.oldest_first = in.scan_by.value_or("") == "TimestampAscending";
  query.count_max = in.max_records.value_or(kPageMax);
  if (in.next_token) {
    const auto after = parse_int(*in.next_token);
    if (!after || *after <= 0) return invalid_token();
    query.after = *after;
  }
  return query;
}

Outcome<aws::DescribeAlarmHistoryOutput> describe_history(
    alarms::AlarmStore& store, const Context& context, const aws::DescribeAlarmHistoryInput& in) {
  const auto query = TRY(history_query(context, in));
  aws::DescribeAlarmHistoryOutput out;
  out.alarm_history_items.emplace();
  if (query.alarm_kinds.empty()) return out;
  const auto page = TRY(store.history(query));
  for (const auto& each : page.items) {
    const auto name = std::ranges::find(kHistoryNames, each.kind,
                                        &std::pair<alarms::HistoryKind, const char*>::first);
    out.alarm_history_items->push_back(
        {.alarm_name = each.alarm.name,
         .alarm_type = each.alarm_kind == AlarmKind::metric ? "MetricAlarm" : "CompositeAlarm",
         .timestamp = each.at,
         .history_item_type = name->second,
         .history_summary = each.summary,
         .history_data = each.data});
  }
  if (page.last != 0) out.next_token = std::to_string(page.last);
  return out;
}

// -- changes of several alarms

// Deletes alarms. As on AWS, unknown alarms are not an error, and an alarm cannot be deleted while
// the rule of a remaining alarm names it.
Outcome<aws::Nothing> remove(alarms::AlarmStore& store, const Context& context,
                             const aws::DeleteAlarmsInput& in) {
  const std::set<std::string> names(in.alarm_names->begin(), in.alarm_names->end());
  return change(store, [&](const Alarms& present) -> Outcome<Change> {
    Change change;
    for (const auto& [parent, children] : children_in(present, context.region))
      for (const std::string& name : names)
        if (!names.contains(parent) && children.contains(name))
          return validation_error("Cannot delete " + shorten(name, 255) +
                                  " as there are composite alarm(s) depending on it.");
    for (const std::string& name : names) {
      const auto found = present.find({context.region, name});
      if (found == present.end()) continue;
      change.removed.push_back(found->first);
      change.history.push_back(configuration_item(*found->second, "deleted", context.now));
    }
    return change;
  });
}

Outcome<aws::Nothing> enable_actions(alarms::AlarmStore& store, const Context& context,
                                     const std::vector<std::string>& names, bool enabled) {
  return change(store, [&](const Alarms& present) -> Outcome<Change> {
    Change change;
    for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
      const auto found = present.find({context.region, name});
      if (found == present.end() || found->second->settings.actions_enabled == enabled) continue;
      Alarm alarm = *found->second;
      alarm.settings.actions_enabled = enabled;
      alarm.configured = std::max(context.now, alarm.configured + 1ms);
      change.history.push_back(configuration_item(alarm, "updated", context.now));
      change.stored.push_back(std::move(alarm));
    }
    return change;
  });
}

Outcome<aws::Nothing> set_state(alarms::AlarmStore& store, const Context& context,
                                const aws::SetAlarmStateInput& in) {
  if (in.state_reason_data && !in.state_reason_data->empty() && !parse_json(*in.state_reason_data))
    return Failure{400, "InvalidFormat", "TheStateReasonData is not valid JSON."};
  const auto state = TRY(parse_state(*in.state_value));
  return change(store, [&](const Alarms& present) -> Outcome<Change> {
    const auto found = present.find({context.region, *in.alarm_name});
    if (found == present.end()) return not_found_failure("Unknown");
    return alarms::transition(
        *found->second,
        {state, *in.state_reason, in.state_reason_data.value_or(""), context.now, {}}, kTexts);
  });
}

}  // namespace

void add_alarm_operations(OperationTable& table, const Settings&, const Services& services) {
  // Runs a function with the store, if the server has one.
  const auto with = [&services](auto function) {
    return
        [&services, function](const Context& context,
                              const auto& in) -> decltype(function(*services.alarms, context, in)) {
          if (!services.alarms) return unavailable("alarms are not available on this server");
          return function(*services.alarms, context, in);
        };
  };
  table.add<aws::PutMetricAlarm>(with(put_metric_alarm));
  table.add<aws::PutCompositeAlarm>(with(put_composite_alarm));
  table.add<aws::DescribeAlarms>(with(describe));
  table.add<aws::DescribeAlarmsForMetric>(with(describe_for_metric));
  table.add<aws::DescribeAlarmHistory>(with(describe_history));
  table.add<aws::DeleteAlarms>(with(remove));
  table.add<aws::SetAlarmState>(with(set_state));
  table.add<aws::EnableAlarmActions>(with([](alarms::AlarmStore& store, const Context& context,
                                             const aws::EnableAlarmActionsInput& in) {
    return enable_actions(store, context, *in.alarm_names, true);
  }));
  table.add<aws::DisableAlarmActions>(with([](alarms::AlarmStore& store, const Context& context,
                                              const aws::DisableAlarmActionsInput& in) {
    return enable_actions(store, context, *in.alarm_names, false);
  }));
}

}  // namespace trainyard::api::cloudwatch

#include "notify/event_bus.hpp"

#include <memory>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::notify {
namespace {

// A client that reads the feed calls follow() more often than this.
constexpr Duration kFollowedFor = 60s;

}  // namespace

std::string EventBus::rule_arn(const std::string& region, const std::string& name) const {
  return contract::event_rule_arn(account_, region, name);
}

EventFeed::Events EventBus::follow(uint64_t position, const std::string& region,
                                   size_t events_max) {
  followed_ = clock_.monotonic();
  return feed_.since(position, region, events_max);
}

bool EventBus::wanted(const std::string& region) const {
  const auto followed = followed_.load();
  if (followed != std::chrono::nanoseconds::min() && clock_.monotonic() - followed < kFollowedFor)
    return true;
  const auto all = notifications_.catalogue();
  const std::string prefix = rule_arn(region, "");
  for (auto at = all->rules.lower_bound(prefix);
       at != all->rules.end() && at->first.starts_with(prefix); ++at)
    if (at->second->enabled && !at->second->targets.empty()) return true;
  return false;
}

Result<void> EventBus::put_rule(Rule wanted) {
  return notifications_.change([&](Catalogue& next) -> Result<StoreChange> {
    const KnownRule* present = next.rule(wanted.arn);
    if (present) {
      wanted.targets = present->targets;
      wanted.created = present->created;
      if (wanted.tags.empty()) wanted.tags = present->tags;
    } else {
      const std::string prefix = rule_arn(region_of_arn(wanted.arn), "");
      size_t rules = 0;
      for (auto at = next.rules.lower_bound(prefix);
           at != next.rules.end() && at->first.starts_with(prefix); ++at)
        ++rules;
      if (rules >= kRulesMax)
        return exhausted("The requested resource exceeds the maximum number of rules allowed: " +
                             std::to_string(kRulesMax),
                         NotifyFault::rule_limit);
      wanted.created = clock_.now();
    }
    return StoreChange{{TRY(next.put(wanted))}};
  });
}

Result<void> EventBus::delete_rule(const std::string& arn) {
  return notifications_.change([&](Catalogue& next) -> Result<StoreChange> {
    StoreChange change;
    const KnownRule* present = next.rule(arn);
    if (!present) return change;
    if (!present->targets.empty()) return conflict("Rule can't be deleted since it has targets.");
    change.documents.push_back(next.remove("rule", arn));
    return change;
  });
}

Result<void> EventBus::change_rule(const std::string& arn,
                                   const std::function<Result<void>(Rule&)>& edit) {
  return notifications_.change([&](Catalogue& next) -> Result<StoreChange> {
    const KnownRule* present = next.rule(arn);
    if (!present)
      return not_found("Rule " + name_of_arn(arn) + " does not exist on EventBus default.");
    Rule changed = *present;
    TRY(edit(changed));
    return StoreChange{{TRY(next.put(std::move(changed)))}};
  });
}

Result<void> EventBus::add_targets(const KnownRule& rule, const Json& event, Instant now,
                                   StoreChange& change) {
  for (const Target& target : rule.targets) {
    Message message;
    message.id = notifications_.new_uuid();
    message.at = now;
    message.body = input_of(target, event, rule.arn, now);
    if (target.kind == TargetKind::topic) {
      message.topic = target.arn;
      const auto added = notifications_.add_deliveries(target.arn, std::move(message), change);
      if (added) continue;
      if (added.error().kind != Kind::not_found) return added.error();
      log(Level::warning, "notify", "dropped an event, since the target of the rule does not exist",
          {{"rule", rule.arn}, {"target", target.arn}});
      continue;
    }
    message.kind = MessageKind::event;
    message.topic = rule.arn;
    const std::string to = event_target(rule.arn, target.id);
    if (notifications_.deliverer().has_capacity(to))
      change.messages.push_back({std::move(message), {to}});
    else
      log(Level::warning, "notify", "dropped an event, since too many are pending for the target",
          {{"rule", rule.arn}, {"target", target.arn}});
  }
  return {};
}

Result<std::vector<std::string>> EventBus::put(std::vector<Event> events,
                                               std::vector<Document> documents) {
  StoreChange change;
  change.documents = std::move(documents);
  std::vector<std::string> ids;
  std::vector<std::pair<std::string, std::shared_ptr<const Json>>> made;
  const auto all = notifications_.catalogue();
  const Instant now = clock_.now();
  for (Event& event : events) {
    if (event.id.empty()) event.id = notifications_.new_uuid();
    ids.push_back(event.id);
    auto json = std::make_shared<const Json>(event_json(event, account_));
    const std::string prefix = rule_arn(event.region, "");
    for (auto at = all->rules.lower_bound(prefix);
         at != all->rules.end() && at->first.starts_with(prefix); ++at) {
      const KnownRule& rule = *at->second;
      if (!rule.enabled || !rule.compiled || rule.targets.empty()) continue;
      const auto matched = rule.compiled->matches(*json);
      if (!matched)
        log(Level::warning, "notify", "cannot compare an event with the pattern of a rule",
            {{"rule", rule.arn}, {"why", matched.error().message}});
      if (matched && *matched) TRY(add_targets(rule, *json, now, change));
    }
    made.emplace_back(event.region, std::move(json));
  }
  TRY(notifications_.store(change));
  for (auto& [region, json] : made) {
    const size_t bytes = dump(*json).size();
    feed_.add(region, std::move(json), bytes);
  }
  return ids;
}

void EventBus::publish_event(Event event) {
  const std::string type = event.detail_type;
  std::vector<Event> one;
  one.push_back(std::move(event));
  if (const auto put_it = put(std::move(one)); !put_it)
    log(Level::error, "notify", "cannot store an event; it is lost",
        {{"type", type}, {"why", put_it.error().message}});
}

}  // namespace trainyard::notify

#include "notify/record.hpp"

#include "base/complete_record.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"

namespace trainyard::notify {
namespace {

constexpr auto kTopicRecord = complete(json_record<Topic>("topic", [](auto& side, auto& each) {
  side("arn", each.arn);
  side.if_set("attributes", each.attributes);
  side.if_set("tags", each.tags);
  side("created", each.created);
}));

constexpr auto kSubscriptionRecord =
    complete(json_record<Subscription>("subscription", [](auto& side, auto& each) {
      side("arn", each.arn);
      side("topic", each.topic);
      side("protocol", each.protocol, kProtocols);
      side("endpoint", each.endpoint);
      side.if_set("creator", each.creator);
      side("confirmed", each.confirmed);
      side("token", each.token);
      side("unsubscribe_token", each.unsubscribe_token);
      side.if_set("authenticate_on_unsubscribe", each.authenticate_on_unsubscribe);
      side.if_set("raw", each.raw);
      side.if_set("filter_policy", each.filter_policy);
      side.if_set("filters_body", each.filters_body);
      side.if_set("delivery_policy", each.delivery_policy);
      side("created", each.created);
    }));

constexpr auto kAttributeRecord =
    complete(json_record<MessageAttribute>("message attribute", [](auto& side, auto& each) {
      side("type", each.type);
      side("value", each.value);
    }));

// An element of the JSON list in which a map of attributes is stored.
struct NamedAttribute {
  std::string name;
  MessageAttribute attribute;
};
constexpr auto kNamedAttributeRecord =
    complete(json_record<NamedAttribute>("message attribute", [](auto& side, auto& each) {
      side("name", each.name);
      side("attribute", each.attribute, kAttributeRecord);
    }));

constexpr auto kMessageRecord = json_record<Message>("message", [](auto& side, auto& each) {
  side("kind", each.kind, kMessageKinds);
  side("id", each.id);
  side("topic", each.topic);
  side("at", each.at);
  side.if_set("subject", each.subject);
  side("body", each.body);
  side.if_set("bodies", each.bodies);
  std::vector<NamedAttribute> named;
  if constexpr (kReads<decltype(side)>) {
    side("attributes", named, kNamedAttributeRecord);
    for (auto& [name, attribute] : named) each.attributes[name] = std::move(attribute);
  } else {
    for (const auto& [name, attribute] : each.attributes) named.push_back({name, attribute});
    side("attributes", named, kNamedAttributeRecord);
  }
});

constexpr auto kTargetRecord = complete(json_record<Target>("target", [](auto& side, auto& each) {
  side("id", each.id);
  side("arn", each.arn);
  side("kind", each.kind, kTargetKinds);
  side.if_set("role_arn", each.role_arn);
  side.if_set("input", each.input);
  side.if_set("input_path", each.input_path);
  side.if_set("paths", each.paths);
  side.if_set("input_template", each.input_template);
  side.if_set("batch", each.batch);
  side.if_set("creator", each.creator);
}));

constexpr auto kRuleRecord = complete(json_record<Rule>("rule", [](auto& side, auto& each) {
  side("arn", each.arn);
  side.if_set("pattern", each.pattern);
  side.if_set("schedule", each.schedule);
  side.if_set("description", each.description);
  side.if_set("role_arn", each.role_arn);
  side("creator", each.creator);
  side("enabled", each.enabled);
  side.if_set("tags", each.tags);
  side("targets", each.targets, kTargetRecord);
  side("created", each.created);
}));

}  // namespace

const std::string& Message::body_for(Protocol protocol) const {
  const auto found = bodies.find(std::string(kProtocols.text(protocol)));
  return found == bodies.end() ? body : found->second;
}

std::string region_of_arn(std::string_view arn) {
  const auto parts = split(arn, ':');
  return parts.size() < 6 ? "" : std::string(parts[3]);
}

std::string name_of_arn(std::string_view arn) {
  return std::string(arn.substr(arn.find_last_of(":/") + 1));
}

Json to_json(const Topic& topic) { return kTopicRecord.write(topic); }
Json to_json(const Subscription& subscription) { return kSubscriptionRecord.write(subscription); }
Json to_json(const Message& message) { return kMessageRecord.write(message); }
Json to_json(const Rule& rule) { return kRuleRecord.write(rule); }
Result<Topic> topic_from_json(const Json& json) { return kTopicRecord.read(json); }
Result<Subscription> subscription_from_json(const Json& json) {
  return kSubscriptionRecord.read(json);
}
Result<Message> message_from_json(const Json& json) { return kMessageRecord.read(json); }
Result<Rule> rule_from_json(const Json& json) { return kRuleRecord.read(json); }

}  // namespace trainyard::notify

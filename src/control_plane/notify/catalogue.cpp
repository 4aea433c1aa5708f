#include "notify/catalogue.hpp"

#include "base/text.hpp"

namespace trainyard::notify {
namespace {

template <class Map>
auto* found_in(const Map& map, const std::string& arn) {
  const auto found = map.find(arn);
  return found == map.end() ? nullptr : found->second.get();
}

// Returns the attributes that filter policies compare: texts, numbers and arrays. Binary attributes
// cannot be filtered.
Json filtered_attributes(const Message& message) {
  Json out = Json::object();
  for (const auto& [name, attribute] : message.attributes) {
    const std::string type = attribute.type.substr(
        0, attribute.type.starts_with("String.Array") ? 12 : attribute.type.find('.'));
    if (type == "String") {
      out[name] = attribute.value;
    } else if (type == "Number" || type == "String.Array") {
      const auto value = parse_json(attribute.value);
      if (value && (type == "Number" ? value->is_number() : value->is_array())) out[name] = *value;
    }
  }
  return out;
}

Result<void> add(Catalogue& all, const Document& each) {
  if (!each.body) return {};
  if (each.kind == "topic")
    all.put(TRY(topic_from_json(*each.body)));
  else if (each.kind == "subscription")
    TRY(all.put(TRY(subscription_from_json(*each.body))));
  else if (each.kind == "rule")
    TRY(all.put(TRY(rule_from_json(*each.body))));
  return {};
}

}  // namespace

const Topic* Catalogue::topic(const std::string& arn) const { return found_in(topics, arn); }
const KnownSubscription* Catalogue::subscription(const std::string& arn) const {
  return found_in(subscriptions, arn);
}
const KnownRule* Catalogue::rule(const std::string& arn) const { return found_in(rules, arn); }

std::vector<std::shared_ptr<const KnownSubscription>> Catalogue::of_topic(
    const std::string& arn) const {
  std::vector<std::shared_ptr<const KnownSubscription>> found;
  const std::string prefix = arn + ":";
  for (auto at = subscriptions.lower_bound(prefix);
       at != subscriptions.end() && at->first.starts_with(prefix); ++at)
    found.push_back(at->second);
  return found;
}

Document Catalogue::put(Topic topic) {
  const std::string arn = topic.arn;
  Document document{"topic", arn, to_json(topic)};
  topics[arn] = std::make_shared<const Topic>(std::move(topic));
  return document;
}

Result<Document> Catalogue::put(Subscription subscription) {
  KnownSubscription known{std::move(subscription)};
  if (!known.filter_policy.empty())
    known.filter = TRY(Pattern::compile(known.filter_policy, kFilterPolicyBytesMax));
  const std::string arn = known.arn;
  Document document{"subscription", arn, to_json(static_cast<const Subscription&>(known))};
  subscriptions[arn] = std::make_shared<const KnownSubscription>(std::move(known));
  return document;
}

Result<Document> Catalogue::put(Rule rule) {
  KnownRule known{std::move(rule)};
  if (!known.pattern.empty())
    known.compiled = TRY(Pattern::compile(known.pattern, kEventPatternBytesMax));
  const std::string arn = known.arn;
  Document document{"rule", arn, to_json(static_cast<const Rule&>(known))};
  rules[arn] = std::make_shared<const KnownRule>(std::move(known));
  return document;
}

Document Catalogue::remove(const std::string& kind, const std::string& arn) {
  if (kind == "topic") topics.erase(arn);
  if (kind == "subscription") subscriptions.erase(arn);
  if (kind == "rule") rules.erase(arn);
  return {kind, arn, std::nullopt};
}

Catalogue build_catalogue(const std::vector<Document>& documents) {
  Catalogue all;
  for (const Document& each : documents)
    if (const auto added = add(all, each); !added)
      log_ignored_record(each.kind, each.id, added.error());
  return all;
}

const Json* FilteredMessage::body_for(Protocol protocol) {
  // All protocols without a separate body share one.
  const std::string name(kProtocols.text(protocol));
  const auto [at, made] = bodies_.try_emplace(message_.bodies.contains(name) ? name : "");
  if (made)
    if (auto parsed = parse_json(message_.body_for(protocol)); parsed && parsed->is_object())
      at->second = *std::move(parsed);
  return at->second.is_object() ? &at->second : nullptr;
}

Result<bool> FilteredMessage::is_for(const KnownSubscription& subscription) {
  if (!subscription.confirmed) return false;
  if (!subscription.filter) return true;
  if (subscription.filters_body) {
    const Json* const body = body_for(subscription.protocol);
    return body ? subscription.filter->matches(*body) : Result<bool>(false);
  }
  if (!attributes_) attributes_ = filtered_attributes(message_);
  return subscription.filter->matches(*attributes_);
}

}  // namespace trainyard::notify

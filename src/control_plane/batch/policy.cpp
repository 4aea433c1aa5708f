#include "batch/policy.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"
#include "domain/limits.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

constexpr std::pair<SchedulingPolicy::Kind, std::string_view> kPolicyKinds[] = {
    {SchedulingPolicy::Kind::fair_share, "fair_share"},
    {SchedulingPolicy::Kind::quota_shares, "quota_shares"}};
constexpr std::pair<QuotaShare::Strategy, std::string_view> kStrategies[] = {
    {QuotaShare::Strategy::reserve, "RESERVE"},
    {QuotaShare::Strategy::lend, "LEND"},
    {QuotaShare::Strategy::lend_and_borrow, "LEND_AND_BORROW"}};

Result<SchedulingPolicy::Kind> parse_kind(std::string_view text) {
  for (const auto& [kind, name] : kPolicyKinds)
    if (name == text) return kind;
  return invalid("unknown kind of scheduling policy '" + shorten(text, 40) + "'");
}

// True if the pattern matches the share. Case counts, unlike in the patterns of retry rules and filters.
bool stands_for(std::string_view pattern, std::string_view share) {
  if (!pattern.ends_with('*')) return pattern == share;
  pattern.remove_suffix(1);
  return share.starts_with(pattern);
}

Json to_json(const CapacityLimit& limit) { return {{"unit", limit.unit}, {"capacity", limit.capacity}}; }
Result<CapacityLimit> limit_from_json(const Json& json) {
  CapacityLimit limit;
  TRY(Fields(json, "limit").read("unit", limit.unit).read("capacity", limit.capacity).result());
  return limit;
}

Json to_json(const ShareWeight& each) { return {{"pattern", each.pattern}, {"weight", each.weight}}; }
Result<ShareWeight> weight_from_json(const Json& json) {
  ShareWeight each;
  TRY(Fields(json, "weight").read("pattern", each.pattern).read("weight", each.weight).result());
  return each;
}

template <class T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& each : all) list.push_back(to_json(each));
  return list;
}

}  // namespace

double SchedulingPolicy::weight_of(std::string_view share) const {
  const auto found =
      std::ranges::find_if(weights, [&](const ShareWeight& each) { return stands_for(each.pattern, share); });
  return found == weights.end() ? 1 : found->weight;
}

int64_t SchedulingPolicy::decay() const { return decay_seconds == 0 ? kDecaySecondsDefault : decay_seconds; }

std::string QuotaShare::queue() const { return key.name.substr(0, key.name.find('/')); }
std::string QuotaShare::name() const {
  const size_t slash = key.name.find('/');
  return slash == std::string::npos ? "" : key.name.substr(slash + 1);
}

std::string quota_share_name(std::string_view queue, std::string_view share) {
  return std::string(queue) + "/" + std::string(share);
}

std::string_view to_string(QuotaShare::Strategy strategy) {
  return std::ranges::find(kStrategies, strategy, &std::pair<QuotaShare::Strategy, std::string_view>::first)
      ->second;
}

Result<QuotaShare::Strategy> parse_strategy(std::string_view text) {
  for (const auto& [strategy, name] : kStrategies)
    if (name == text) return strategy;
  return invalid("unknown sharing strategy '" + shorten(text, 40) + "'");
}

Result<ConsumableResource> updated(ConsumableResource present, const ConsumableResource& change) {
  if (!change.token.empty()) {
    if (std::ranges::find(present.tokens, change.token) != present.tokens.end()) return present;
    if (present.tokens.size() == kUpdateTokensKept) present.tokens.erase(present.tokens.begin());
    present.tokens.push_back(change.token);
  }
  present.total = change.set.value_or(present.total);
  const auto sum = checked_add<int64_t>(present.total, change.add);
  if (!sum || *sum < 0 || *sum > kCountedMax)
    return invalid("the consumable resource " + present.key.name + " has " + std::to_string(present.total) +
                   ", which " + std::to_string(change.add) + " cannot be added to");
  present.total = *sum;
  return present;
}

Result<void> check_weights(const std::vector<ShareWeight>& weights) {
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t j = 0; j < weights.size(); ++j) {
      std::string_view text = weights[j].pattern;
      if (text.ends_with('*')) text.remove_suffix(1);
      // Either pattern may match the other, so each pair is checked in both directions.
      if (i != j && stands_for(weights[i].pattern, text))
        return invalid("the share identifiers " + shorten(weights[i].pattern, kShareNameMax) + " and " +
                       shorten(weights[j].pattern, kShareNameMax) + " overlap");
    }
  return {};
}

Json to_json(const SchedulingPolicy& policy) {
  return {{"key", to_json(policy.key)},
          {"kind", std::ranges::find(kPolicyKinds, policy.kind,
                                     &std::pair<SchedulingPolicy::Kind, std::string_view>::first)
                       ->second},
          {"decay_seconds", policy.decay_seconds},
          {"reservation_percent", policy.reservation_percent},
          {"weights", list_of(policy.weights)},
          {"request", policy.request}};
}

Result<SchedulingPolicy> policy_from_json(const Json& json) {
  SchedulingPolicy policy;
  TRY(Fields(json, "scheduling_policy")
          .read("key", policy.key, job_key_from_json)
          .read("kind", policy.kind, parse_kind)
          .read("decay_seconds", policy.decay_seconds)
          .read("reservation_percent", policy.reservation_percent)
          .read("weights", policy.weights, weight_from_json)
          .read("request", policy.request)
          .result());
  return policy;
}

Json to_json(const ServiceEnvironment& environment) {
  return {{"key", to_json(environment.key)},
          {"enabled", environment.enabled},
          {"limits", list_of(environment.limits)},
          {"request", environment.request}};
}

Result<ServiceEnvironment> service_environment_from_json(const Json& json) {
  ServiceEnvironment environment;
  TRY(Fields(json, "service_environment")
          .read("key", environment.key, job_key_from_json)
          .read("enabled", environment.enabled)
          .read("limits", environment.limits, limit_from_json)
          .read("request", environment.request)
          .result());
  return environment;
}

Json to_json(const QuotaShare& share) {
  Json json{{"key", to_json(share.key)},
            {"enabled", share.enabled},
            {"limits", list_of(share.limits)},
            {"strategy", to_string(share.strategy)},
            {"preempts_within", share.preempts_within},
            {"request", share.request}};
  if (share.borrow_percent) json["borrow_percent"] = *share.borrow_percent;
  return json;
}

Result<QuotaShare> quota_share_from_json(const Json& json) {
  QuotaShare share;
  TRY(Fields(json, "quota_share")
          .read("key", share.key, job_key_from_json)
          .read("enabled", share.enabled)
          .read("limits", share.limits, limit_from_json)
          .read("strategy", share.strategy, parse_strategy)
          .read("borrow_percent", share.borrow_percent)
          .read("preempts_within", share.preempts_within)
          .read("request", share.request)
          .result());
  return share;
}

Json to_json(const ConsumableResource& resource) {
  Json json{{"key", to_json(resource.key)},
            {"replenishable", resource.replenishable},
            {"total", resource.total},
            {"created", to_milliseconds(resource.created)}};
  if (!resource.tokens.empty()) json["tokens"] = resource.tokens;
  if (resource.set) json["set"] = *resource.set;
  if (resource.add != 0) json["add"] = resource.add;
  if (!resource.token.empty()) json["token"] = resource.token;
  return json;
}

Result<ConsumableResource> consumable_from_json(const Json& json) {
  ConsumableResource resource;
  TRY(Fields(json, "consumable_resource")
          .read("key", resource.key, job_key_from_json)
          .read("replenishable", resource.replenishable)
          .read("total", resource.total)
          .read("created", resource.created)
          .read("tokens", resource.tokens)
          .read("set", resource.set)
          .read("add", resource.add)
          .read("token", resource.token)
          .result());
  return resource;
}

}  // namespace trainyard::batch

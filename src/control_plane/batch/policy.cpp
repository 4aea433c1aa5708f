#include "batch/policy.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/enum_table.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

constexpr EnumTable<SchedulingPolicy::Kind> kPolicyKinds{
    "kind of scheduling policy",
    {{SchedulingPolicy::Kind::fair_share, "fair_share"},
     {SchedulingPolicy::Kind::quota_shares, "quota_shares"}}};
constexpr EnumTable<QuotaShare::Strategy> kStrategies{
    "sharing strategy",
    {{QuotaShare::Strategy::reserve, "RESERVE"},
     {QuotaShare::Strategy::lend, "LEND"},
     {QuotaShare::Strategy::lend_and_borrow, "LEND_AND_BORROW"}}};

// Returns true if the pattern matches the share. It is case-sensitive, unlike the patterns of retry
// rules and filters.
bool stands_for(std::string_view pattern, std::string_view share) {
  if (!pattern.ends_with('*')) return pattern == share;
  pattern.remove_suffix(1);
  return share.starts_with(pattern);
}

constexpr auto kCapacityLimit = json_record<CapacityLimit>("limit", [](auto& side, auto& limit) {
  side("unit", limit.unit);
  side("capacity", limit.capacity);
});

constexpr auto kShareWeight = json_record<ShareWeight>("weight", [](auto& side, auto& each) {
  side("pattern", each.pattern);
  side("weight", each.weight);
});

constexpr auto kSchedulingPolicy =
    json_record<SchedulingPolicy>("scheduling_policy", [](auto& side, auto& policy) {
      side("key", policy.key, job_key_from_json);
      side("kind", policy.kind, kPolicyKinds);
      side("decay_seconds", policy.decay_seconds);
      side("reservation_percent", policy.reservation_percent);
      side("weights", policy.weights, kShareWeight);
      side("request", policy.request);
    });

constexpr auto kServiceEnvironment =
    json_record<ServiceEnvironment>("service_environment", [](auto& side, auto& environment) {
      side("key", environment.key, job_key_from_json);
      side("enabled", environment.enabled);
      side("limits", environment.limits, kCapacityLimit);
      side("request", environment.request);
    });

constexpr auto kQuotaShare = json_record<QuotaShare>("quota_share", [](auto& side, auto& share) {
  side("key", share.key, job_key_from_json);
  side("enabled", share.enabled);
  side("limits", share.limits, kCapacityLimit);
  side("strategy", share.strategy, kStrategies);
  side.if_set("borrow_percent", share.borrow_percent);
  side("preempts_within", share.preempts_within);
  side("request", share.request);
});

constexpr auto kConsumable =
    json_record<ConsumableResource>("consumable_resource", [](auto& side, auto& resource) {
      side("key", resource.key, job_key_from_json);
      side("replenishable", resource.replenishable);
      side("total", resource.total);
      side("created", resource.created);
      side.if_set("tokens", resource.tokens);
      side.if_set("set", resource.set);
      side.if_set("add", resource.add);
      side.if_set("token", resource.token);
    });

}  // namespace

double SchedulingPolicy::weight_of(std::string_view share) const {
  const auto found = std::ranges::find_if(
      weights, [&](const ShareWeight& each) { return stands_for(each.pattern, share); });
  return found == weights.end() ? 1 : found->weight;
}

int64_t SchedulingPolicy::decay() const {
  return decay_seconds == 0 ? kDecaySecondsDefault : decay_seconds;
}

std::string QuotaShare::queue() const { return key.name.substr(0, key.name.find('/')); }
std::string QuotaShare::name() const {
  const size_t slash = key.name.find('/');
  return slash == std::string::npos ? "" : key.name.substr(slash + 1);
}

std::string quota_share_name(std::string_view queue, std::string_view share) {
  return std::string(queue) + "/" + std::string(share);
}

std::string_view to_string(QuotaShare::Strategy strategy) { return kStrategies.text(strategy); }
Result<QuotaShare::Strategy> parse_strategy(std::string_view text) {
  return kStrategies.parse(text);
}

Result<ConsumableResource> updated(ConsumableResource current, const ConsumableResource& change) {
  if (!change.token.empty()) {
    if (std::ranges::find(current.tokens, change.token) != current.tokens.end()) return current;
    if (current.tokens.size() == kUpdateTokensKept) current.tokens.erase(current.tokens.begin());
    current.tokens.push_back(change.token);
  }
  current.total = change.set.value_or(current.total);
  const auto sum = checked_add<int64_t>(current.total, change.add);
  if (!sum || *sum < 0 || *sum > kCountedMax)
    return invalid("invalid quantity " + std::to_string(change.add) + " to add to the " +
                   std::to_string(current.total) + " of the consumable resource " +
                   current.key.name + ": the total must be 0 to " + std::to_string(kCountedMax));
  current.total = *sum;
  return current;
}

Result<void> check_weights(const std::vector<ShareWeight>& weights) {
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t j = 0; j < weights.size(); ++j) {
      std::string_view text = weights[j].pattern;
      if (text.ends_with('*')) text.remove_suffix(1);
      // Either pattern may match the other, so each pair is checked in both directions.
      if (i != j && stands_for(weights[i].pattern, text))
        return invalid("the share identifiers " + shorten(weights[i].pattern, kShareNameMax) +
                       " and " + shorten(weights[j].pattern, kShareNameMax) + " overlap");
    }
  return {};
}

Json to_json(const SchedulingPolicy& policy) { return kSchedulingPolicy.write(policy); }
Json to_json(const ServiceEnvironment& environment) {
  return kServiceEnvironment.write(environment);
}
Json to_json(const QuotaShare& share) { return kQuotaShare.write(share); }
Json to_json(const ConsumableResource& resource) { return kConsumable.write(resource); }
Result<SchedulingPolicy> policy_from_json(const Json& json) { return kSchedulingPolicy.read(json); }
Result<ServiceEnvironment> service_environment_from_json(const Json& json) {
  return kServiceEnvironment.read(json);
}
Result<QuotaShare> quota_share_from_json(const Json& json) { return kQuotaShare.read(json); }
Result<ConsumableResource> consumable_from_json(const Json& json) { return kConsumable.read(json); }

}  // namespace trainyard::batch

#include "domain/job_options.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

bool applies(const RetryRule& rule, const AttemptEnd& end) {
  if (!rule.status_reason.empty() && !matches(rule.status_reason, end.status_reason)) return false;
  if (!rule.reason.empty() && !matches(rule.reason, end.reason)) return false;
  if (rule.exit_code.empty()) return true;
  return end.exit_code && matches(rule.exit_code, std::to_string(*end.exit_code));
}

// The one that decides; nullptr: none does.
const RetryRule* rule_for(const BatchPart& batch, const AttemptEnd& end) {
  const auto rule =
      std::ranges::find_if(batch.retry_rules, [&](const RetryRule& each) { return applies(each, end); });
  return rule == batch.retry_rules.end() ? nullptr : &*rule;
}

Json to_json(const RetryRule& rule) {
  Json json{{"retry", rule.retry}};
  if (!rule.status_reason.empty()) json["status_reason"] = rule.status_reason;
  if (!rule.reason.empty()) json["reason"] = rule.reason;
  if (!rule.exit_code.empty()) json["exit_code"] = rule.exit_code;
  return json;
}

Result<RetryRule> retry_rule_from_json(const Json& json) {
  RetryRule rule;
  TRY(Fields(json, "retry_rule")
          .read("retry", rule.retry)
          .read("status_reason", rule.status_reason)
          .read("reason", rule.reason)
          .read("exit_code", rule.exit_code)
          .result());
  return rule;
}

Json to_json(const Consumption& each) { return {{"resource", each.resource}, {"quantity", each.quantity}}; }

Result<Consumption> consumption_from_json(const Json& json) {
  Consumption each;
  TRY(Fields(json, "consumption").read("resource", each.resource).read("quantity", each.quantity).result());
  return each;
}

constexpr std::pair<Withdrawn, std::string_view> kWithdrawn[] = {
    {Withdrawn::no, "no"},
    {Withdrawn::cancelled, "cancelled"},
    {Withdrawn::terminated, "terminated"},
    {Withdrawn::dependency_failed, "dependency_failed"},
    {Withdrawn::queue_deleted, "queue_deleted"}};

}  // namespace

std::string_view to_string(Withdrawn withdrawn) {
  return std::ranges::find(kWithdrawn, withdrawn, &std::pair<Withdrawn, std::string_view>::first)->second;
}

Result<Withdrawn> parse_withdrawn(std::string_view text) {
  for (const auto& [value, name] : kWithdrawn)
    if (name == text) return value;
  return invalid("'" + shorten(text, 60) + "' is not a way to withdraw a job");
}

std::string BatchPart::definition_name() const {
  const size_t slash = definition.rfind('/');
  const std::string with_revision = definition.substr(slash == std::string::npos ? 0 : slash + 1);
  return with_revision.substr(0, with_revision.rfind(':'));
}

bool matches(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return equals_ignoring_case(pattern, text);
  pattern.remove_suffix(1);
  return text.size() >= pattern.size() && equals_ignoring_case(pattern, text.substr(0, pattern.size()));
}

bool tries_again(const BatchPart& batch, size_t attempts_made, const AttemptEnd& end) {
  if (attempts_made >= batch.attempts_max) return false;
  const RetryRule* rule = rule_for(batch, end);
  return !rule || rule->retry;
}

bool ends_with_interruption(const BatchPart& batch, const AttemptEnd& end) {
  const RetryRule* rule = rule_for(batch, end);
  return rule && !rule->retry && !rule->status_reason.empty();
}

Json to_json(const BatchPart& batch) {
  Json json{{"name", batch.name},
            {"queue", batch.queue},
            {"definition", batch.definition},
            {"attempts_max", batch.attempts_max}};
  if (!batch.depends_on.empty()) json["depends_on"] = batch.depends_on;
  if (batch.main_node) json["main_node"] = *batch.main_node;
  if (batch.service) {
    json["service"] = true;
    json["service_request"] = batch.service_request;
  }
  if (!batch.share.empty()) json["share"] = batch.share;
  if (!batch.quota_share.empty()) json["quota_share"] = batch.quota_share;
  if (batch.priority != 0) json["priority"] = batch.priority;
  if (batch.preemptions_max) json["preemptions_max"] = *batch.preemptions_max;
  for (const Consumption& each : batch.consumes) json["consumes"].push_back(to_json(each));
  if (batch.array_size > 0) json["array_size"] = batch.array_size;
  if (batch.sequential) json["sequential"] = true;
  if (!batch.depends_on_alike.empty()) json["depends_on_alike"] = batch.depends_on_alike;
  if (batch.retry_rules.empty()) return json;
  json["retry_rules"] = Json::array();
  for (const RetryRule& rule : batch.retry_rules) json["retry_rules"].push_back(to_json(rule));
  return json;
}

Result<BatchPart> batch_part_from_json(const Json& json) {
  BatchPart batch;
  TRY(Fields(json, "batch")
          .read("name", batch.name)
          .read("queue", batch.queue)
          .read("definition", batch.definition)
          .read("attempts_max", batch.attempts_max)
          .read("retry_rules", batch.retry_rules, retry_rule_from_json)
          .read("depends_on", batch.depends_on)
          .read("main_node", batch.main_node)
          .read("service", batch.service)
          .read("service_request", batch.service_request)
          .read("share", batch.share)
          .read("quota_share", batch.quota_share)
          .read("priority", batch.priority)
          .read("consumes", batch.consumes, consumption_from_json)
          .read("preemptions_max", batch.preemptions_max)
          .read("array_size", batch.array_size)
          .read("sequential", batch.sequential)
          .read("depends_on_alike", batch.depends_on_alike)
          .result());
  return batch;
}

}  // namespace trainyard::domain

#include "domain/job_options.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "domain/job.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

bool applies(const RetryRule& rule, const AttemptEnd& end) {
  if (!rule.status_reason.empty() && !matches(rule.status_reason, end.status_reason)) return false;
  if (!rule.reason.empty() && !matches(rule.reason, end.reason)) return false;
  if (rule.exit_code.empty()) return true;
  return end.exit_code && matches(rule.exit_code, std::to_string(*end.exit_code));
}

// Finds the first rule that applies; nullptr if none does.
const RetryRule* rule_for(const RetryOptions& retry, const AttemptEnd& end) {
  const auto rule =
      std::ranges::find_if(retry.rules, [&](const RetryRule& each) { return applies(each, end); });
  return rule == retry.rules.end() ? nullptr : &*rule;
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

bool matches(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return equals_ignoring_case(pattern, text);
  pattern.remove_suffix(1);
  return text.size() >= pattern.size() && equals_ignoring_case(pattern, text.substr(0, pattern.size()));
}

bool tries_again(const RetryOptions& retry, size_t attempts_made, const AttemptEnd& end) {
  if (attempts_made >= retry.attempts_max) return false;
  const RetryRule* rule = rule_for(retry, end);
  return !rule || rule->retry;
}

bool ends_with_interruption(const RetryOptions& retry, const AttemptEnd& end) {
  const RetryRule* rule = rule_for(retry, end);
  return rule && !rule->retry && !rule->status_reason.empty();
}

Json queued_json(const JobSpec& spec) {
  Json json{{"name", spec.display_name},
            {"queue", spec.queue->name},
            {"definition", spec.definition},
            {"attempts_max", spec.retry.attempts_max}};
  if (!spec.depends_on.empty()) json["depends_on"] = spec.depends_on;
  if (spec.main_node) json["main_node"] = *spec.main_node;
  if (spec.contract == Contract::training) {
    json["service"] = true;
    json["service_request"] = spec.queue->request;
  }
  if (!spec.queue->share.empty()) json["share"] = spec.queue->share;
  if (!spec.queue->quota_share.empty()) json["quota_share"] = spec.queue->quota_share;
  if (spec.queue->priority != 0) json["priority"] = spec.queue->priority;
  if (spec.queue->preemptions_max) json["preemptions_max"] = *spec.queue->preemptions_max;
  for (const Consumption& each : spec.queue->consumes) json["consumes"].push_back(to_json(each));
  if (spec.array.size > 0) json["array_size"] = spec.array.size;
  if (spec.array.sequential) json["sequential"] = true;
  if (!spec.depends_on_alike.empty()) json["depends_on_alike"] = spec.depends_on_alike;
  if (spec.retry.rules.empty()) return json;
  json["retry_rules"] = Json::array();
  for (const RetryRule& rule : spec.retry.rules) json["retry_rules"].push_back(to_json(rule));
  return json;
}

Result<void> read_queued(const Json& json, JobSpec& spec) {
  QueueOptions& queue = spec.queue.emplace();
  bool training = false;
  TRY(Fields(json, "batch")
          .read("name", spec.display_name)
          .read("queue", queue.name)
          .read("definition", spec.definition)
          .read("attempts_max", spec.retry.attempts_max)
          .read("retry_rules", spec.retry.rules, retry_rule_from_json)
          .read("depends_on", spec.depends_on)
          .read("main_node", spec.main_node)
          .read("service", training)
          .read("service_request", queue.request)
          .read("share", queue.share)
          .read("quota_share", queue.quota_share)
          .read("priority", queue.priority)
          .read("consumes", queue.consumes, consumption_from_json)
          .read("preemptions_max", queue.preemptions_max)
          .read("array_size", spec.array.size)
          .read("sequential", spec.array.sequential)
          .read("depends_on_alike", spec.depends_on_alike)
          .result());
  spec.contract = training ? Contract::training : Contract::plain;
  return {};
}

}  // namespace trainyard::domain

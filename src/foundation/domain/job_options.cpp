#include "domain/job_options.hpp"

#include <algorithm>

#include "base/enum_table.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/job.hpp"

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

constexpr auto kRetryRule = json_record<RetryRule>("retry_rule", [](auto& side, auto& rule) {
  side("retry", rule.retry);
  side.if_set("status_reason", rule.status_reason);
  side.if_set("reason", rule.reason);
  side.if_set("exit_code", rule.exit_code);
});

constexpr auto kConsumption = json_record<Consumption>("consumption", [](auto& side, auto& each) {
  side("resource", each.resource);
  side("quantity", each.quantity);
});

// The member of the spec's record has the name "batch", which errors contain.
constexpr auto kQueued = json_record<JobSpec>("batch", [](auto& side, auto& spec) {
  if constexpr (kReads<decltype(side)>) spec.queue.emplace();
  auto& queue = *spec.queue;
  side("name", spec.display_name);
  side("queue", queue.name);
  side("definition", spec.definition);
  side("attempts_max", spec.retry.attempts_max);
  side.if_set("retry_rules", spec.retry.rules, kRetryRule);
  side.if_set("depends_on", spec.depends_on);
  side.if_set("main_node", spec.main_node);
  bool training = spec.contract == Contract::training;
  if constexpr (kReads<decltype(side)>) training = false;
  side.if_set("service", training);
  if constexpr (kReads<decltype(side)>)
    spec.contract = training ? Contract::training : Contract::plain;
  side.when(training, "service_request", queue.request);
  side.if_set("share", queue.share);
  side.if_set("quota_share", queue.quota_share);
  side.if_set("priority", queue.priority);
  side.if_set("consumes", queue.consumes, kConsumption);
  side.if_set("preemptions_max", queue.preemptions_max);
  side.if_set("array_size", spec.array.size);
  side.if_set("sequential", spec.array.sequential);
  side.if_set("depends_on_alike", spec.depends_on_alike);
});

constexpr EnumTable<Cancellation> kCancellation{
    "cancellation of a job",
    {{Cancellation::no, "no"},
     {Cancellation::cancelled, "cancelled"},
     {Cancellation::terminated, "terminated"},
     {Cancellation::dependency_failed, "dependency_failed"},
     {Cancellation::queue_deleted, "queue_deleted"}}};

}  // namespace

std::string_view to_string(Cancellation cancellation) { return kCancellation.text(cancellation); }
Result<Cancellation> parse_cancellation(std::string_view text) { return kCancellation.parse(text); }

bool matches(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return equals_ignoring_case(pattern, text);
  pattern.remove_suffix(1);
  return text.size() >= pattern.size() &&
         equals_ignoring_case(pattern, text.substr(0, pattern.size()));
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

Json queued_json(const JobSpec& spec) { return kQueued.write(spec); }
Result<void> read_queued(const Json& json, JobSpec& spec) { return kQueued.read_into(json, spec); }

}  // namespace trainyard::domain

// Implements the operations on the targets of rules.
#include <algorithm>

#include "auth/delegated_access.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "events/common.hpp"

namespace trainyard::api::events {
namespace {

using notify::EventBus;
using notify::Rule;
using notify::Target;
using notify::TargetKind;

constexpr size_t kTargetsOfRequestMax = 100;

Failure wrong(const std::string& why) { return events_failure("ValidationException", why); }

Outcome<Done> check_offered(const aws::Target& given) {
  const auto refuse = [&](const char* member) {
    return wrong(std::string(member) + " of target " + *given.id +
                 " is not offered by this server.");
  };
  if (given.kinesis_parameters) return refuse("KinesisParameters");
  if (given.run_command_parameters) return refuse("RunCommandParameters");
  if (given.ecs_parameters) return refuse("EcsParameters");
  if (given.sqs_parameters) return refuse("SqsParameters");
  if (given.http_parameters) return refuse("HttpParameters");
  if (given.redshift_data_parameters) return refuse("RedshiftDataParameters");
  if (given.sage_maker_pipeline_parameters) return refuse("SageMakerPipelineParameters");
  if (given.dead_letter_config) return refuse("DeadLetterConfig");
  if (given.retry_policy) return refuse("RetryPolicy");
  if (given.app_sync_parameters) return refuse("AppSyncParameters");
  return Done{};
}

Outcome<TargetKind> kind_of(const Context& context, const std::string& arn) {
  const auto parts = split(arn, ':');
  if (parts.size() < 6 || parts[0] != "arn" || parts[1] != "aws")
    return wrong("Provided Arn is not in correct format: " + shorten(arn, 200));
  if (parts[3] != context.region || parts[4] != context.principal.account)
    return wrong("The target " + shorten(arn, 200) + " is not of this account and region.");
  if (parts[2] == "sns" && parts.size() == 6) return TargetKind::topic;
  if (parts[2] == "logs" && parts.size() >= 7 && parts[5] == "log-group")
    return TargetKind::log_group;
  if (parts[2] == "batch" && parts.size() == 6 && parts[5].starts_with("job-queue/"))
    return TargetKind::job_queue;
  return wrong("The target " + shorten(arn, 200) +
               " is none that this server offers: an SNS topic, a log group or a job queue of "
               "Batch.");
}

// Returns the principal on whose behalf a target submits jobs.
Outcome<Json> creator_of(const Context& context) {
  const auto principal = TRY(record_of(context, ""));
  return Json{{"arn", principal.arn}, {"record", principal.record}};
}

Outcome<Target> target_of(const Context& context, const aws::Target& given) {
  TRY(check_offered(given));
  Target target;
  target.id = *given.id;
  target.arn = *given.arn;
  target.kind = TRY(kind_of(context, target.arn));
  target.role_arn = given.role_arn.value_or("");
  target.input = given.input.value_or("");
  target.input_path = given.input_path.value_or("");
  if (given.input_transformer) {
    target.input_template = *given.input_transformer->input_template;
    if (given.input_transformer->input_paths_map)
      target.paths = *given.input_transformer->input_paths_map;
  }
  if (const auto checked = notify::check_input(target); !checked)
    return wrong(checked.error().message);
  if (target.kind == TargetKind::log_group &&
      !target.arn.substr(target.arn.find(":log-group:")).starts_with(":log-group:/aws/events/"))
    return wrong("The name of the log group of target " + target.id +
                 " must begin with /aws/events/.");
  if ((target.kind == TargetKind::job_queue) != given.batch_parameters.has_value())
    return wrong("BatchParameters must be given for target " + target.id +
                 " if, and only if, it is a job queue.");
  if (!given.batch_parameters) return target;
  const auto& batch = *given.batch_parameters;
  target.batch = {{"jobDefinition", *batch.job_definition}, {"jobName", *batch.job_name}};
  if (batch.array_properties && batch.array_properties->size)
    target.batch["arrayProperties"] = {{"size", *batch.array_properties->size}};
  if (batch.retry_strategy && batch.retry_strategy->attempts)
    target.batch["retryStrategy"] = {{"attempts", *batch.retry_strategy->attempts}};
  target.creator = TRY(creator_of(context));
  return target;
}

Outcome<aws::PutTargetsResponse> put_targets(EventBus& bus, const Context& context,
                                             const aws::PutTargetsRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  if (in.targets->size() > kTargetsOfRequestMax) return wrong("Too many targets in one request.");
  std::vector<Target> wanted;
  for (const auto& each : *in.targets) wanted.push_back(TRY(target_of(context, each)));
  TRY(with_failure(
      failure_for,
      bus.change_rule(bus.rule_arn(context.region, *in.rule), [&](Rule& rule) -> Result<void> {
        for (Target& target : wanted) {
          std::erase_if(rule.targets, [&](const Target& each) { return each.id == target.id; });
          rule.targets.push_back(target);
        }
        std::ranges::sort(rule.targets, {}, &Target::id);
        if (rule.targets.size() > notify::kRuleTargetsMax)
          return exhausted(
              "The requested resource exceeds the maximum number of targets allowed: " +
                  std::to_string(notify::kRuleTargetsMax),
              notify::NotifyFault::rule_limit);
        return {};
      })));
  return aws::PutTargetsResponse{.failed_entry_count = 0,
                                 .failed_entries = std::vector<aws::PutTargetsResultEntry>()};
}

Outcome<aws::RemoveTargetsResponse> remove_targets(EventBus& bus, const Context& context,
                                                   const aws::RemoveTargetsRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  aws::RemoveTargetsResponse out{.failed_entry_count = 0,
                                 .failed_entries = std::vector<aws::RemoveTargetsResultEntry>()};
  TRY(with_failure(
      failure_for, bus.change_rule(bus.rule_arn(context.region, *in.rule), [&](Rule& rule) {
        for (const auto& id : *in.ids)
          if (std::erase_if(rule.targets, [&](const Target& each) { return each.id == id; }) == 0)
            out.failed_entries->push_back({.target_id = id,
                                           .error_code = "ResourceNotFoundException",
                                           .error_message = "Target " + id + " does not exist."});
        return ok();
      })));
  out.failed_entry_count = int64_t(out.failed_entries->size());
  return out;
}

aws::Target to_shape(const Target& target) {
  const auto if_given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  aws::Target out{.id = target.id,
                  .arn = target.arn,
                  .role_arn = if_given(target.role_arn),
                  .input = if_given(target.input),
                  .input_path = if_given(target.input_path)};
  if (!target.input_template.empty()) {
    out.input_transformer.emplace();
    out.input_transformer->input_template = target.input_template;
    if (!target.paths.empty()) out.input_transformer->input_paths_map = target.paths;
  }
  if (target.kind != TargetKind::job_queue) return out;
  out.batch_parameters.emplace();
  out.batch_parameters->job_definition = target.batch.value("jobDefinition", "");
  out.batch_parameters->job_name = target.batch.value("jobName", "");
  if (target.batch.contains("arrayProperties"))
    out.batch_parameters->array_properties.emplace().size =
        target.batch["arrayProperties"].value("size", int64_t(0));
  if (target.batch.contains("retryStrategy"))
    out.batch_parameters->retry_strategy.emplace().attempts =
        target.batch["retryStrategy"].value("attempts", int64_t(0));
  return out;
}

Outcome<aws::ListTargetsByRuleResponse> list_targets(EventBus& bus, const Context& context,
                                                     const aws::ListTargetsByRuleRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  const auto all = bus.notifications().catalogue();
  const Rule* rule = all->rule(bus.rule_arn(context.region, *in.rule));
  if (!rule) return unknown_rule(*in.rule);
  std::vector<std::string> ids;
  for (const Target& each : rule->targets) ids.push_back(each.id);
  const PageOf page = TRY(page_of(ids, in.next_token, in.limit));
  aws::ListTargetsByRuleResponse out{.targets = std::vector<aws::Target>(),
                                     .next_token = page.next_token};
  for (size_t i = page.first; i < page.end; ++i) out.targets->push_back(to_shape(rule->targets[i]));
  return out;
}

Outcome<aws::ListRuleNamesByTargetResponse> list_names(
    EventBus& bus, const Context& context, const aws::ListRuleNamesByTargetRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  std::vector<std::string> names;
  const auto all = bus.notifications().catalogue();
  const std::string prefix = bus.rule_arn(context.region, "");
  for (auto at = all->rules.lower_bound(prefix);
       at != all->rules.end() && at->first.starts_with(prefix); ++at)
    if (std::ranges::any_of(at->second->targets,
                            [&](const Target& each) { return each.arn == *in.target_arn; }))
      names.push_back(notify::name_of_arn(at->first));
  const PageOf page = TRY(page_of(names, in.next_token, in.limit));
  aws::ListRuleNamesByTargetResponse out{.rule_names = std::vector<std::string>(),
                                         .next_token = page.next_token};
  out.rule_names->assign(names.begin() + long(page.first), names.begin() + long(page.end));
  return out;
}

}  // namespace

void add_targets(OperationTable& table, const Services& services) {
  table.add<aws::PutTargets>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::PutTargetsResponse> {
        return put_targets(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::RemoveTargets>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::RemoveTargetsResponse> {
        return remove_targets(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::ListTargetsByRule>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::ListTargetsByRuleResponse> {
        return list_targets(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::ListRuleNamesByTarget>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::ListRuleNamesByTargetResponse> {
        return list_names(*TRY(bus_of(services)), context, in);
      });
}

}  // namespace trainyard::api::events

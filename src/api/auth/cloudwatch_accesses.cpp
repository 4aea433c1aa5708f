#include "auth/cloudwatch_accesses.hpp"

#include <string>
#include <utility>
#include <vector>

#include "auth/member_texts.hpp"
#include "auth/request_tags.hpp"
#include "base/json.hpp"
#include "protocol/json.hpp"

namespace trainyard::api {
namespace {

using shapes::Shape;

// Adds kMetricJobKey, with the job in the dimensions of each metric of a request.
void add_metric_jobs(const Shape& shape, const void* input, Accesses& out) {
  std::string request;
  write_json(shape, input, request);
  const auto json = parse_json(request);
  if (!json) return;
  std::vector<std::string> jobs;
  const auto add = [&](const Json& metric) {
    std::string job = "-";
    if (metric.contains("Dimensions"))
      for (const Json& dimension : metric["Dimensions"])
        if (dimension.value("Name", "") == "TrainingJobName") job = dimension.value("Value", "-");
    jobs.push_back(std::move(job));
  };
  if (json->contains("EntityMetricData")) jobs.push_back("-");
  if (json->contains("MetricData"))
    for (const Json& metric : (*json)["MetricData"]) add(metric);
  else
    add(*json);
  out.values.emplace_back(kMetricJobKey, std::move(jobs));
}

// Adds the actions of an alarm. The server runs them later with its own rights, so the principal
// must have these rights.
void add_alarm_actions(const Shape& shape, const void* input, Accesses& out) {
  for (const char* member : {"OKActions[]", "AlarmActions[]", "InsufficientDataActions[]"})
    for (std::string& arn : texts_at(&shape, input, member)) {
      if (arn.find(":sagemaker:") != std::string::npos)
        out.all.push_back({"sagemaker:StopTrainingJob", std::move(arn)});
      else if (arn.find(":sns:") != std::string::npos)
        out.all.push_back({"sns:Publish", std::move(arn)});
    }
}

// Adds the log groups of an insight rule: its reports show values of their events, as queries do.
void add_rule_groups(const Context& context, const Shape& shape, const void* input, Accesses& out) {
  const auto definition = parse_json(member_text(shape, input, "RuleDefinition"));
  if (!definition || !definition->is_object()) return;
  const Json groups = definition->value("LogGroupNames", Json::array());
  for (const Json& group : groups.is_array() ? groups : Json::array({groups}))
    out.all.push_back(
        {"logs:StartQuery",
         "arn:aws:logs:" + context.region + ":" + context.principal.account + ":log-group:" +
             (group.is_string() ? group.get<std::string>() : dump(group)) + ":log-stream:"});
}

}  // namespace

void add_cloudwatch_accesses(const Context& context, const shapes::OperationShape& operation,
                             const void* input, Accesses& out) {
  const Shape& shape = *operation.input;
  const auto texts = [&](std::string_view path) { return texts_at(&shape, input, path); };
  std::vector<std::string> spaces = texts("Namespace");
  for (const char* list :
       {"MetricDataQueries[].MetricStat.Metric.Namespace", "Metrics[].MetricStat.Metric.Namespace"})
    for (std::string& each : texts(list)) spaces.push_back(std::move(each));
  set(out.values, "cloudwatch:namespace", std::move(spaces));
  if (operation.name == "PutMetricData" || operation.name == "GetMetricStatistics" ||
      operation.name == "ListMetrics")
    add_metric_jobs(shape, input, out);
  if (operation.name == "PutMetricAlarm" || operation.name == "PutCompositeAlarm")
    add_alarm_actions(shape, input, out);
  if (operation.name == "PutInsightRule") add_rule_groups(context, shape, input, out);
  // As on AWS, creating a resource with tags needs the permission to add tags.
  if (operation.name.starts_with("Put") && !texts("Tags[].Key").empty())
    out.all.push_back({"cloudwatch:TagResource", out.all.front().resource});
  add_tags(texts("Tags[].Key"), texts("Tags[].Value"), out);
  if (operation.name == "UntagResource") set(out.values, "aws:TagKeys", texts("TagKeys[]"));
}

}  // namespace trainyard::api

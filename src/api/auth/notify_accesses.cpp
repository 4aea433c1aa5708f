#include "auth/notify_accesses.hpp"

#include <string>

#include "auth/member_texts.hpp"
#include "auth/request_tags.hpp"
#include "base/json.hpp"
#include "batch/arn.hpp"
#include "notify/notifications.hpp"
#include "protocol/json.hpp"

namespace trainyard::api {
namespace {

void add_target_accesses(const Context& context, const Json& target, Accesses& out) {
  const std::string arn = target.value("Arn", "");
  if (arn.starts_with("arn:aws:sns:")) out.all.push_back({"sns:Publish", arn});
  if (arn.starts_with("arn:aws:logs:"))
    for (const char* action : {"logs:CreateLogStream", "logs:PutLogEvents"})
      out.all.push_back({action, arn + ":log-stream:*"});
  if (!arn.starts_with("arn:aws:batch:")) return;
  out.all.push_back({"batch:SubmitJob", arn});
  const auto parameters = target.find("BatchParameters");
  if (parameters == target.end() || !parameters->is_object()) return;
  const std::string definition = parameters->value("JobDefinition", "");
  out.all.push_back(
      {"batch:SubmitJob",
       trainyard::batch::arn_of(
           context.principal.account, context.region, "job-definition",
           std::string(trainyard::batch::name_in_arn(definition, "job-definition")))});
}

}  // namespace

void add_notify_accesses(const Context& context, const shapes::OperationShape& operation,
                         const void* input, Accesses& out) {
  const auto texts = [&](std::string_view path) { return texts_at(operation.input, input, path); };
  const std::string_view name = operation.name;
  if (operation.service->name == "sns") {
    set(out.values, "sns:Protocol", texts("Protocol"));
    set(out.values, "sns:Endpoint", texts("Endpoint"));
  }
  // As on AWS, creating a resource with tags needs the permission to tag it.
  if ((name == "CreateTopic" || name == "PutRule") && !texts("Tags[].Key").empty())
    out.all.push_back(
        {std::string(operation.service->name) + ":TagResource", out.all.front().resource});
  add_tags(texts("Tags[].Key"), texts("Tags[].Value"), out);
  if (name == "UntagResource") set(out.values, "aws:TagKeys", texts("TagKeys[]"));
  if (name != "PutTargets") return;
  std::string request;
  write_json(*operation.input, input, request);
  const auto json = parse_json(request);
  if (!json || !json->contains("Targets")) return;
  for (const Json& target : (*json)["Targets"]) add_target_accesses(context, target, out);
}

bool is_notify_arn(const std::string& arn) {
  return arn.starts_with("arn:aws:sns:") || arn.starts_with("arn:aws:events:");
}

std::map<std::string, std::string> notify_tags(const notify::Notifications& all,
                                               const std::string& arn) {
  const auto catalogue = all.catalogue();
  const auto* subscription = catalogue->subscription(arn);
  if (const auto* topic = catalogue->topic(subscription ? subscription->topic : arn))
    return topic->tags;
  const auto* rule = catalogue->rule(arn);
  return rule ? rule->tags : std::map<std::string, std::string>();
}

}  // namespace trainyard::api

#include "api/audit.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api {
namespace {

constexpr int kForbidden = 403;
constexpr std::string_view kReading[] = {"Describe", "Filter", "Get",      "Head",  "List",
                                         "Lookup",   "Search", "Simulate", "Query", "BatchGet"};
constexpr std::string_view kDataOfLogs[] = {"PutLogEvents", "GetLogEvents", "FilterLogEvents"};
constexpr std::string_view kDataOfMetrics[] = {"PutMetricData", "GetMetricStatistics", "GetMetricData"};

struct ResourceType {
  std::string_view service, prefix, type;
};

// By the service of an ARN and the beginning of its last component; the first that fits.
constexpr ResourceType kResourceTypes[] = {
    {"sagemaker", "training-job/", "AWS::SageMaker::TrainingJob"},
    {"batch", "job-queue/", "AWS::Batch::JobQueue"},
    {"batch", "compute-environment/", "AWS::Batch::ComputeEnvironment"},
    {"batch", "job-definition/", "AWS::Batch::JobDefinition"},
    {"batch", "scheduling-policy/", "AWS::Batch::SchedulingPolicy"},
    {"batch", "job/", "AWS::Batch::Job"},
    {"iam", "role/", "AWS::IAM::Role"},
    {"iam", "user/", "AWS::IAM::User"},
    {"iam", "group/", "AWS::IAM::Group"},
    {"iam", "policy/", "AWS::IAM::Policy"},
    {"logs", "log-group:", "AWS::Logs::LogGroup"},
};

std::string_view type_of(std::string_view arn) {
  const auto parts = split(arn, ':');
  if (parts.size() < 6) return {};
  const std::string_view name = arn.substr(size_t(parts[5].data() - arn.data()));
  if (parts[2] == "s3")
    return name.find('/') == std::string_view::npos ? "AWS::S3::Bucket" : "AWS::S3::Object";
  for (const ResourceType& one : kResourceTypes)
    if (one.service == parts[2] && name.starts_with(one.prefix)) return one.type;
  return {};
}

bool is_data(const shapes::Service& service, std::string_view operation) {
  if (service.name == "s3")
    return operation.find("Object") != std::string_view::npos ||
           operation.find("Upload") != std::string_view::npos ||
           operation.find("Parts") != std::string_view::npos;
  if (service.name == "logs") return std::ranges::find(kDataOfLogs, operation) != std::end(kDataOfLogs);
  return service.name == "cloudwatch" &&
         std::ranges::find(kDataOfMetrics, operation) != std::end(kDataOfMetrics);
}

Json identity_of(const Principal& principal) {
  Json identity{{"principalId", principal.user_id},
                {"arn", principal.arn},
                {"accountId", principal.account},
                {"accessKeyId", principal.access_key_id}};
  if (!principal.role_arn.empty()) {
    identity["type"] = "AssumedRole";
    identity["sessionContext"]["sessionIssuer"] = {
        {"type", "Role"},
        {"arn", principal.role_arn},
        {"accountId", principal.account},
        {"userName", principal.role_arn.substr(principal.role_arn.rfind('/') + 1)}};
  } else {
    identity["type"] = principal.arn.ends_with(":root") ? "Root" : "IAMUser";
    identity["userName"] = principal.name;
  }
  return identity;
}

}  // namespace

bool is_read_only(std::string_view operation) {
  return std::ranges::any_of(kReading,
                             [&](std::string_view prefix) { return operation.starts_with(prefix); });
}

bool is_recorded(const AnsweredRequest& request) {
  if (request.context.principal.arn.empty()) return false;
  return request.status == kForbidden || !is_data(request.service, request.operation);
}

Json audit_event(const AnsweredRequest& request) {
  Json event{{"eventVersion", "1.08"},
             {"userIdentity", identity_of(request.context.principal)},
             {"eventTime", to_iso8601(request.context.now, false)},
             {"eventSource", std::string(request.service.scope) + ".amazonaws.com"},
             {"eventName", request.operation},
             {"awsRegion", request.context.region},
             {"sourceIPAddress", request.context.source_ip},
             {"userAgent", to_utf8(request.context.user_agent)},
             {"requestParameters", nullptr},
             {"responseElements", nullptr},
             {"requestID", request.context.request_id},
             {"eventID", request.event_id},
             {"readOnly", is_read_only(request.operation)},
             {"eventType", "AwsApiCall"},
             {"managementEvent", !is_data(request.service, request.operation)},
             {"recipientAccountId", request.context.principal.account},
             {"eventCategory", is_data(request.service, request.operation) ? "Data" : "Management"}};
  if (!request.error_code.empty()) event["errorCode"] = request.error_code;
  Json resources = Json::array();
  for (const std::string& arn : request.resources) {
    if (arn.empty() || arn == "*") continue;
    Json resource{{"ARN", to_utf8(arn)}, {"accountId", request.context.principal.account}};
    if (const auto type = type_of(arn); !type.empty()) resource["type"] = type;
    resources.push_back(std::move(resource));
  }
  if (!resources.empty()) event["resources"] = std::move(resources);
  return event;
}

}  // namespace trainyard::api

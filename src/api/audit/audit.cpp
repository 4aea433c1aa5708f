#include "audit/audit.hpp"

#include <algorithm>

#include "auth/temporary_keys.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "protocol/json.hpp"

namespace trainyard::api {
namespace {

constexpr int kForbidden = 403;
constexpr size_t kResourcesMax = 100;  // in a record, as in CloudTrail
constexpr size_t kTypicalBytes = 1'024;
constexpr std::string_view kAccessDenied = "AccessDenied";  // some services append "Exception"
constexpr std::string_view kReading[] = {"Describe", "Filter",   "Get",     "Head",
                                         "List",     "Lookup",   "Search",  "Simulate",
                                         "Query",    "BatchGet", "Preview", "Replay"};
constexpr std::string_view kDataOfLogs[] = {"PutLogEvents", "GetLogEvents", "FilterLogEvents"};
constexpr std::string_view kDataOfMetrics[] = {"PutMetricData", "GetMetricStatistics",
                                               "GetMetricData"};

struct ResourceType {
  std::string_view service, prefix, type;
};

// Resource types by the service of an ARN and the beginning of its last component. The first match
// counts.
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
  if (service.name == "logs")
    return std::ranges::find(kDataOfLogs, operation) != std::end(kDataOfLogs);
  return service.name == "cloudwatch" &&
         std::ranges::find(kDataOfMetrics, operation) != std::end(kDataOfMetrics);
}

// Appends a JSON object member by member. Every management request has a record, so it is written
// as text directly: a tree of values would cost more than the request itself.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }

  void text(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(out_, value);
  }
  void boolean(std::string_view name, bool value) { literal(name, value ? "true" : "false"); }
  void number(std::string_view name, int64_t value) { literal(name, std::to_string(value)); }
  void null(std::string_view name) { literal(name, "null"); }
  // Appends a member's name. The caller appends the value.
  void key(std::string_view name) {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

 private:
  void literal(std::string_view name, std::string_view value) {
    key(name);
    out_ += value;
  }

  std::string& out_;
  bool is_first_ = true;
};

void append_identity(std::string& out, const Principal& principal) {
  ObjectWriter identity(out);
  identity.text("principalId", principal.user_id);
  identity.text("arn", principal.arn);
  identity.text("accountId", principal.account);
  identity.text("accessKeyId", principal.access_key_id);
  if (principal.role_arn.empty()) {
    identity.text("type", principal.arn.ends_with(":root") ? "Root" : "IAMUser");
    identity.text("userName", principal.name);
    if (!principal.invoked_by.empty()) identity.text("invokedBy", principal.invoked_by);
    return identity.end();
  }
  identity.text("type", "AssumedRole");
  identity.key("sessionContext");
  ObjectWriter session(out);
  session.key("sessionIssuer");
  ObjectWriter issuer(out);
  issuer.text("type", "Role");
  issuer.text("arn", principal.role_arn);
  issuer.text("accountId", principal.account);
  issuer.text("userName",
              std::string_view(principal.role_arn).substr(principal.role_arn.rfind('/') + 1));
  issuer.end();
  if (principal.session && !principal.session->source_identity.empty())
    session.text("sourceIdentity", principal.session->source_identity);
  session.end();
  if (!principal.invoked_by.empty()) identity.text("invokedBy", principal.invoked_by);
  identity.end();
}

void append_resources(std::string& out, const AnsweredRequest& request) {
  out += '[';
  size_t count = 0;
  for (const std::string& arn : request.resources) {
    if (arn.empty() || arn == "*" || count == kResourcesMax) continue;
    if (count++ > 0) out += ',';
    ObjectWriter resource(out);
    resource.text("ARN", arn);
    resource.text("accountId", request.context.principal.account);
    if (const auto type = type_of(arn); !type.empty()) resource.text("type", type);
    resource.end();
  }
  out += ']';
}

}  // namespace

bool is_read_only(std::string_view operation) {
  return std::ranges::any_of(
      kReading, [&](std::string_view prefix) { return operation.starts_with(prefix); });
}

bool is_recorded(const AnsweredRequest& request) {
  if (request.context.principal.arn.empty()) return false;
  // The JSON services deny with status 400.
  const bool denied = request.status == kForbidden || request.error_code.starts_with(kAccessDenied);
  return denied || !is_data(request.service, request.operation);
}

std::string audit_record(const AnsweredRequest& request) {
  const Context& context = request.context;
  const bool data = is_data(request.service, request.operation);
  std::string out;
  out.reserve(kTypicalBytes);
  ObjectWriter record(out);
  record.text("eventVersion", "1.08");
  record.key("userIdentity");
  append_identity(out, context.principal);
  record.text("eventTime", to_iso8601(context.now, false));
  record.text("eventSource", std::string(request.service.scope) + ".amazonaws.com");
  record.text("eventName", request.operation);
  record.text("awsRegion", context.region);
  record.text("sourceIPAddress", context.source_ip);
  record.text("userAgent", context.user_agent);
  if (!request.error_code.empty()) record.text("errorCode", request.error_code);
  record.null("requestParameters");
  record.null("responseElements");
  if (!request.host.empty()) {
    record.key("additionalEventData");
    ObjectWriter data_of_shell(out);
    data_of_shell.text("host", request.host);
    data_of_shell.end();
  }
  if (request.lasted) {
    record.key("serviceEventDetails");
    ObjectWriter details(out);
    details.number("durationSeconds", request.lasted->count());
    details.end();
  }
  record.text("requestID", context.request_id);
  record.text("eventID", request.event_id);
  record.boolean("readOnly", is_read_only(request.operation));
  const bool named = std::ranges::any_of(
      request.resources, [](const auto& arn) { return !arn.empty() && arn != "*"; });
  if (named) {
    record.key("resources");
    append_resources(out, request);
  }
  record.text("eventType", request.lasted ? "AwsServiceEvent" : "AwsApiCall");
  record.boolean("managementEvent", !data);
  record.text("recipientAccountId", context.principal.account);
  record.text("eventCategory", data ? "Data" : "Management");
  record.end();
  return out;
}

// A successful read is cheap for the client and its record costs a KiB of disk, so reads beyond the
// rate of a polling client are not recorded.
bool AuditTrail::exceeds_read_rate(const AnsweredRequest& request) {
  static constexpr RateLimits kRecorded{.reads_per_second = 100};
  return request.error_code.empty() && is_read_only(request.operation) &&
         !recorded_reads_.admit(request.context.principal.name, OperationClass::reads, kRecorded,
                                clock_.monotonic());
}

// The record of a read never waits for a full queue, since the read may run on an I/O thread.
void AuditTrail::append(const AnsweredRequest& request) {
  if (!log_ || !is_recorded(request) || exceeds_read_rate(request)) return;
  const auto when_full =
      is_read_only(request.operation) ? observe::WhenFull::drop : observe::WhenFull::wait;
  if (auto kept = log_->append(audit_record(request), request.context.now, when_full); !kept)
    log(Level::error, "api", "a request is not in the audit log",
        {{"request", request.context.request_id}, {"why", kept.error().message}});
}

}  // namespace trainyard::api

#include "auth/logs_accesses.hpp"

#include <utility>

#include "auth/member_texts.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

using shapes::Shape;

std::string group_arns(const Context& context) {
  return "arn:aws:logs:" + context.region + ":" + context.principal.account + ":log-group:";
}

// The name in an identifier of a group, which is a name or an ARN.
std::string group_name(std::string_view arns, std::string identifier) {
  if (identifier.starts_with(arns)) identifier = identifier.substr(arns.size());
  if (identifier.ends_with(":*")) identifier.resize(identifier.size() - 2);
  return identifier;
}

// Adds the log streams of a request. The request has the group's name or its identifier, which may
// be an ARN, and one stream, several streams, a prefix of names, or none for all streams.
void add_streams(const Context& context, std::string_view action, const Shape& shape,
                 const void* input, Accesses& out) {
  std::string group = member_text(shape, input, "logGroupName");
  if (group.empty()) group = member_text(shape, input, "logGroupIdentifier");
  const std::string arns = group_arns(context);
  const std::string streams = arns + group_name(arns, group) + ":log-stream:";
  std::vector<std::string> names = texts_at(&shape, input, "logStreamNames[]");
  if (const std::string name = member_text(shape, input, "logStreamName"); !name.empty())
    names.push_back(name);
  if (names.empty()) names.push_back(member_text(shape, input, "logStreamNamePrefix"));
  for (const std::string& name : names) out.all.push_back({std::string(action), streams + name});
}

// Adds all streams of the groups of a query.
void add_groups(const Context& context, std::string_view action, const Shape& shape,
                const void* input, Accesses& out) {
  const std::string arns = group_arns(context);
  std::vector<std::string> groups = texts_at(&shape, input, "logGroupNames[]");
  for (const char* list : {"logGroupIdentifiers[]", "logGroupName", "logGroupIdentifier"})
    for (std::string& each : texts_at(&shape, input, list)) groups.push_back(std::move(each));
  if (groups.empty()) groups.emplace_back();  // the operation rejects it
  for (const std::string& group : groups)
    out.all.push_back({std::string(action), arns + group_name(arns, group) + ":log-stream:"});
}

// Adds the stream that a pointer of Logs Insights names. The operation rejects other texts.
void add_record(const Context& context, std::string_view action, const Shape& shape,
                const void* input, Accesses& out) {
  const auto text = from_base64(member_text(shape, input, "logRecordPointer"));
  const auto parts = text ? parse_json(*text) : Result<Json>(invalid(""));
  const bool whole = parts && parts->is_array() && parts->size() == 3 && (*parts)[0].is_string() &&
                     (*parts)[1].is_string();
  out.all.push_back(
      {std::string(action), whole ? group_arns(context) + (*parts)[0].get<std::string>() +
                                        ":log-stream:" + (*parts)[1].get<std::string>()
                                  : "*"});
}

// Adds the objects that an export task writes: below its prefix.
void add_exported(const Context&, std::string_view action, const Shape& shape, const void* input,
                  Accesses& out) {
  std::string prefix = member_text(shape, input, "destinationPrefix");
  if (prefix.empty()) prefix = "exportedlogs";
  const std::string bucket = member_text(shape, input, "destination");
  out.all.push_back({std::string(action), "arn:aws:s3:::" + bucket + "/" + prefix + "/"});
  out.all.push_back({std::string(action), "arn:aws:s3:::" + bucket + "/aws-logs-write-test"});
}

// Returns the ARN of all streams of the log group in `arn`; "" for any other ARN.
std::string streams_in(const std::string& arn) {
  constexpr std::string_view kMark = ":log-group:";
  const size_t mark = arn.find(kMark);
  if (!arn.starts_with("arn:aws:logs:") || mark == std::string::npos) return "";
  const std::string groups = arn.substr(0, mark + kMark.size());
  return groups + group_name(groups, arn) + ":log-stream:";
}

// The actions that send to AWS resources which webhooks replace here, by service.
constexpr std::pair<std::string_view, std::string_view> kSendActions[] = {
    {"firehose", "firehose:PutRecordBatch"},
    {"kinesis", "kinesis:PutRecords"},
    {"lambda", "lambda:InvokeFunction"}};

// Returns the action for the ARN of such a resource; "" for any other ARN.
std::string_view send_action(std::string_view arn) {
  const size_t partition = arn.starts_with("arn:") ? arn.find(':', 4) : std::string_view::npos;
  if (partition == std::string_view::npos) return "";
  for (const auto& [service, action] : kSendActions)
    if (arn.substr(partition + 1).starts_with(std::string(service) + ":")) return action;
  return "";
}

// Adds the targets to which a request sends log events: a destination, a log group, a bucket with a
// prefix, or a stream or function that a webhook replaces. A delivery may write Hive's form of the
// path in a bucket, which its destination does not tell, so both forms are added.
void add_targets(const Context& context, std::string_view action, const Shape& shape,
                 const void* input, Accesses& out) {
  constexpr std::string_view kBuckets = "arn:aws:s3:::";
  for (const char* member :
       {"destinationArn", "targetArn", "deliveryDestinationConfiguration.destinationResourceArn"}) {
    std::string arn = member_text(shape, input, member);
    if (std::string streams = streams_in(arn); !streams.empty()) {
      out.all.push_back({"logs:PutLogEvents", std::move(streams)});
    } else if (arn.starts_with(kBuckets)) {
      if (!arn.ends_with('/')) arn += '/';
      const std::string& account = context.principal.account;
      for (const char* form : {"AWSLogs/", "AWSLogs/aws-account-id="})
        out.all.push_back({"s3:PutObject", arn + form + account + "/"});
    } else if (const auto send = send_action(arn); !send.empty()) {
      out.all.push_back({std::string(send), std::move(arn)});
    } else if (arn.find(":destination:") != std::string::npos) {
      out.all.push_back({std::string(action), std::move(arn)});
    }
  }
}

// Adds the logs that a delivery source reads: all streams of a group or of a training job.
void add_delivered(const Context& context, std::string_view, const Shape& shape, const void* input,
                   Accesses& out) {
  const std::string arn = member_text(shape, input, "resourceArn");
  const std::string jobs =
      "arn:aws:sagemaker:" + context.region + ":" + context.principal.account + ":training-job/";
  if (std::string streams = streams_in(arn); !streams.empty()) {
    out.all.push_back({"logs:GetLogEvents", std::move(streams)});
  } else if (arn.starts_with(jobs)) {
    out.all.push_back({"logs:GetLogEvents", group_arns(context) +
                                                "/aws/sagemaker/TrainingJobs:log-stream:" +
                                                arn.substr(jobs.size()) + "/"});
  } else {
    // The permission that AWS requires of a resource with logs, by its service.
    const size_t service = arn.find(':', 8);  // after "arn:aws:"
    out.all.push_back({(service == std::string::npos ? "logs" : arn.substr(8, service - 8)) +
                           ":AllowVendedLogDeliveryForResource",
                       arn});
  }
}

}  // namespace

bool add_log_accesses(std::string_view resource, std::string_view action, const Context& context,
                      const Shape& shape, const void* input, Accesses& out) {
  const auto add = resource == kLogStreams      ? add_streams
                   : resource == kLogGroups     ? add_groups
                   : resource == kLogRecord     ? add_record
                   : resource == kExportedLogs  ? add_exported
                   : resource == kLogTargets    ? add_targets
                   : resource == kDeliveredLogs ? add_delivered
                                                : nullptr;
  if (add) add(context, action, shape, input, out);
  return add != nullptr;
}

}  // namespace trainyard::api

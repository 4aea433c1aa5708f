// Implements the operations on export tasks, which copy log events to objects of a bucket.
#include <algorithm>

#include "log_routing/exports.hpp"
#include "logs/common.hpp"
#include "objects/objects.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using log_routing::ExportState;

// How long CreateExportTask waits for the task, so that short tasks have ended when it returns.
constexpr Duration kExportWait = 200ms;
constexpr int64_t kExportTimeMax = 253'402'300'799'000;  // milliseconds: the year 9999
constexpr std::string_view kTestObject = "aws-logs-write-test";
constexpr std::string_view kTestText = "Permission Check Successful";

constexpr std::pair<ExportState, const char*> kExportStates[] = {
    {ExportState::pending, "PENDING"},
    {ExportState::running, "RUNNING"},
    {ExportState::completed, "COMPLETED"},
    {ExportState::failed, "FAILED"},
    {ExportState::cancelled, "CANCELLED"}};

const char* export_state_text(ExportState state) {
  return std::ranges::find(kExportStates, state, [](const auto& each) { return each.first; })
      ->second;
}

Outcome<aws::CreateExportTaskResponse> create_task(const Services& services,
                                                   log_routing::Exports& exports,
                                                   const Context& context,
                                                   const aws::CreateExportTaskRequest& in) {
  TRY_LOGS(services.logs.group(context.region, *in.log_group_name));
  if (!services.objects.head_bucket(*in.destination))
    return invalid_parameter(
        "The given bucket does not exist. Please make sure the bucket is valid.");
  if (*in.to < *in.from)
    return invalid_parameter("The end time must not be before the start time.");
  // As on AWS, a test object proves that the task may write.
  const auto written = [&]() -> Result<void> {
    const auto writer =
        TRY(services.objects.put(*in.destination, std::string(kTestObject),
                                 {.content_type = "text/plain", .owner = context.principal.name}));
    TRY(writer->write(kTestText));
    TRY(writer->commit());
    return ok();
  }();
  if (!written)
    return invalid_parameter("Writing to the bucket failed: " + written.error().message);
  log_routing::ExportRequest request{.region = context.region,
                                     .name = in.task_name.value_or(""),
                                     .group = *in.log_group_name,
                                     .stream_prefix = in.log_stream_name_prefix.value_or(""),
                                     .principal = context.principal.name,
                                     .from = std::min(*in.from, kExportTimeMax),
                                     .to = std::min(*in.to, kExportTimeMax),
                                     .bucket = *in.destination};
  if (in.destination_prefix && !in.destination_prefix->empty())
    request.prefix = *in.destination_prefix;
  const auto id = exports.start(std::move(request));
  if (!id && id.error().kind == Kind::exhausted) return limit_exceeded(id.error().message);
  if (!id) return id.error();
  exports.wait(*id, kExportWait);
  return aws::CreateExportTaskResponse{.task_id = *id};
}

Outcome<aws::DescribeExportTasksResponse> describe_tasks(
    log_routing::Exports& exports, const Context& context,
    const aws::DescribeExportTasksRequest& in) {
  aws::DescribeExportTasksResponse out;
  out.export_tasks.emplace();
  size_t skip = 0, seen = 0;
  if (in.next_token) skip = size_t(std::max<int64_t>(0, TRY(list_position(*in.next_token)).at));
  const size_t limit = size_t(in.limit.value_or(kListDefault));
  for (const auto& report : exports.list(context.region)) {
    const auto& request = report.request;
    if (in.task_id && *in.task_id != report.id) continue;
    if (in.status_code && *in.status_code != export_state_text(report.state)) continue;
    if (seen++ < skip) continue;
    if (out.export_tasks->size() == limit) {
      out.next_token = list_token({int64_t(skip + limit), ""});
      break;
    }
    aws::ExportTask task{.task_id = report.id,
                         .log_group_name = request.group,
                         .from = request.from,
                         .to = request.to,
                         .destination = request.bucket,
                         .destination_prefix = request.prefix};
    if (!request.name.empty()) task.task_name = request.name;
    task.status = {.code = export_state_text(report.state), .message = report.message};
    task.execution_info = {.creation_time = to_milliseconds(report.created)};
    if (report.ended) task.execution_info->completion_time = to_milliseconds(*report.ended);
    out.export_tasks->push_back(std::move(task));
  }
  if (in.task_id && out.export_tasks->empty() && !in.status_code)
    return resource_not_found("The specified export task does not exist.");
  return out;
}

}  // namespace

void add_exports(OperationTable& table, const Services& services) {
  if (!services.log_exports) return;
  log_routing::Exports& exports = *services.log_exports;
  table.add<aws::CreateExportTask>([services, &exports](const Context& context, const auto& in) {
    return create_task(services, exports, context, in);
  });
  table.add<aws::DescribeExportTasks>([&exports](const Context& context, const auto& in) {
    return describe_tasks(exports, context, in);
  });
  table.add<aws::CancelExportTask>(
      [&exports](const Context& context,
                 const aws::CancelExportTaskRequest& in) -> Outcome<aws::Nothing> {
        const auto cancelled = exports.cancel(context.region, *in.task_id);
        if (!cancelled) return resource_not_found("The specified export task does not exist.");
        if (!*cancelled)
          return Failure{400, "InvalidOperationException",
                         "The specified export task has already finished"};
        return aws::Nothing{};
      });
}

}  // namespace trainyard::api::logs

// Implements the operations on data repository tasks.
#include <algorithm>

#include "base/text.hpp"
#include "fsx/common.hpp"
#include "operations/fsx_tags.hpp"

namespace trainyard::api::fsx {
namespace {

using file_systems::RepositoryTask;
using file_systems::TaskKind;
using file_systems::TaskState;

constexpr size_t kTaskIdBytes = 8;  // random, after the "0" with which AWS's ids begin
constexpr std::pair<TaskKind, std::string_view> kTypes[] = {
    {TaskKind::export_files, "EXPORT_TO_REPOSITORY"},
    {TaskKind::import_files, "IMPORT_METADATA_FROM_REPOSITORY"}};

Failure no_task(const std::string& id) {
  return fsx_failure("DataRepositoryTaskNotFound",
                     "Data repository task '" + shorten(id, 120) + "' does not exist.");
}

std::string state_text(TaskState state) { return to_upper(file_systems::kTaskStates.text(state)); }

aws::DataRepositoryTaskStatus shown_status(const Context& context, const RepositoryTask& each,
                                           const file_systems::Progress* progress) {
  aws::DataRepositoryTaskStatus out;
  const bool running = !is_over(each.state) && progress;
  out.total_count = running ? progress->files.load() : each.total;
  out.succeeded_count = running ? progress->files_done.load() : each.succeeded;
  out.failed_count = running ? progress->files_failed.load() : each.failed;
  out.last_updated_time = running ? context.now : each.updated;
  return out;
}

aws::DataRepositoryTask to_shape(const Services& services, const Context& context,
                                 const RepositoryTask& each) {
  aws::DataRepositoryTask out;
  out.task_id = each.id;
  out.lifecycle = state_text(each.state);
  const auto type = std::ranges::find(kTypes, each.kind, [](const auto& row) { return row.first; });
  out.type = std::string(type->second);
  out.creation_time = each.created;
  out.start_time = each.started;
  out.end_time = each.ended;
  out.resource_arn = fsx_arn(context.region, context.principal.account, "task/" + each.id);
  out.tags = shown_tags<aws::Tag>(each.tags);
  out.file_system_id = each.file_system;
  out.paths = each.paths;
  if (!each.failure.empty()) out.failure_details = {.message = each.failure};
  const auto progress =
      services.file_systems->progress(file_systems::key_of(context.region, each.id));
  out.status = shown_status(context, each, progress.get());
  aws::CompletionReport& report = out.report.emplace();
  report.enabled = !each.report.empty();
  if (!each.report.empty()) {
    report.path = each.report;
    report.format = "REPORT_CSV_20191124";
    report.scope = "FAILED_FILES_ONLY";
  }
  return out;
}

Outcome<std::string> report_of(const aws::CompletionReport& report) {
  if (!report.enabled.value_or(false)) return std::string();
  if (!report.path || !report.format || !report.scope)
    return bad_request("An enabled Report has a Path, a Format and a Scope");
  return *report.path;
}

Outcome<RepositoryTask> task_of(const Services& services, const Context& context,
                                const aws::CreateDataRepositoryTaskRequest& in) {
  const auto type = std::ranges::find(kTypes, *in.type, [](const auto& row) { return row.second; });
  if (type == std::end(kTypes))
    return fsx_failure("UnsupportedOperation",
                       "Tasks of type " + *in.type +
                           " are not offered by this server: files keep their content here");
  if (in.capacity_to_release || in.release_configuration)
    return bad_request(
        "CapacityToRelease and ReleaseConfiguration are of tasks that release files");
  RepositoryTask out;
  out.id = "task-0" + services.random.hex(kTaskIdBytes);
  out.file_system = *in.file_system_id;
  out.mark = mark_of<aws::CreateDataRepositoryTask>(in);
  out.kind = type->first;
  out.created = out.updated = context.now;
  for (const std::string& path : in.paths.value_or(std::vector<std::string>())) {
    std::string directory = TRY(with_fsx_failure(file_systems::parse_directory(path)));
    if (directory.empty()) {  // the root: all files
      out.paths.clear();
      break;
    }
    out.paths.push_back(std::move(directory));
  }
  out.report = TRY(report_of(*in.report));
  out.tags = TRY(tags_of(in.tags));
  return out;
}

// Checks that the report is written into a linked repository.
Result<void> check_report(const Snapshot& snapshot, const std::string& region,
                          const RepositoryTask& task) {
  if (task.report.empty()) return {};
  const auto at = TRY(file_systems::parse_repository(task.report));
  const auto links = file_systems::links_of(
      snapshot, file_systems::key_of(region, task.file_system), TaskKind::export_files);
  for (const auto& link : links)
    if (link.repository.bucket == at.bucket && at.key.starts_with(link.repository.key)) return {};
  return invalid("The Path of the Report must be within the file system's linked data repository",
                 file_systems::Fault::bad_request);
}

Outcome<aws::CreateDataRepositoryTaskResponse> create_task(
    const Services& services, const Context& context,
    const aws::CreateDataRepositoryTaskRequest& in) {
  auto* all = TRY(file_systems_of(services));
  const RepositoryTask requested = TRY(task_of(services, context, in));
  RepositoryTask made = requested;
  std::optional<Failure> failure;
  TRY(with_fsx_failure(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    auto before = find_earlier_request(next.tasks, context.region, requested.mark);
    if (!before) {
      failure = before.failure(aws::kService);
      return {};
    }
    if (!before->empty()) {
      made = next.tasks[*before];
      return {};
    }
    TRY(file_systems::check_task(next, context.region, requested));
    TRY(check_report(next, context.region, requested));
    next.tasks[file_systems::key_of(context.region, requested.id)] = made = requested;
    file_systems::drop_old_tasks(next, context.region);
    return {};
  })));
  if (failure) return *failure;
  return aws::CreateDataRepositoryTaskResponse{.data_repository_task =
                                                   to_shape(services, context, made)};
}

Outcome<bool> passes(const RepositoryTask& each,
                     const std::vector<aws::DataRepositoryTaskFilter>& filters) {
  for (const auto& filter : filters) {
    const std::string name = filter.name.value_or("");
    std::string value;
    if (name == "file-system-id")
      value = each.file_system;
    else if (name == "task-lifecycle")
      value = state_text(each.state);
    else
      return bad_request("The filter " + name + " is not offered for tasks");
    const auto values = filter.values.value_or(std::vector<std::string>());
    if (std::ranges::find(values, value) == values.end()) return false;
  }
  return true;
}

Outcome<aws::DescribeDataRepositoryTasksResponse> describe_tasks(
    const Services& services, const Context& context,
    const aws::DescribeDataRepositoryTasksRequest& in) {
  const auto* all = TRY(file_systems_of(services));
  const auto present = all->snapshot();
  const auto ids = in.task_ids.value_or(std::vector<std::string>());
  const auto filters = in.filters.value_or(std::vector<aws::DataRepositoryTaskFilter>());
  for (const std::string& id : ids)
    if (!present->tasks.contains(file_systems::key_of(context.region, id))) return no_task(id);
  TRY(passes(RepositoryTask(), filters));
  aws::DescribeDataRepositoryTasksResponse out;
  out.data_repository_tasks = TRY(page_of(
      present->tasks, context.region, in.max_results, in.next_token, out.next_token,
      [&](const RepositoryTask& each) {
        const auto passed = passes(each, filters);
        return passed && *passed && (ids.empty() || std::ranges::find(ids, each.id) != ids.end());
      },
      [&](const std::string&, const RepositoryTask& each) {
        return to_shape(services, context, each);
      }));
  return out;
}

Outcome<aws::CancelDataRepositoryTaskResponse> cancel_task(
    const Services& services, const Context& context,
    const aws::CancelDataRepositoryTaskRequest& in) {
  auto* all = TRY(file_systems_of(services));
  std::optional<Failure> failure;
  TRY(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    const auto found = next.tasks.find(file_systems::key_of(context.region, *in.task_id));
    if (found == next.tasks.end())
      failure = no_task(*in.task_id);
    else if (is_over(found->second.state))
      failure = fsx_failure("DataRepositoryTaskEnded",
                            "The data repository task could not be canceled because the task has "
                            "already ended.");
    else
      found->second.state = TaskState::canceling;
    return {};
  }));
  if (failure) return *failure;
  aws::CancelDataRepositoryTaskResponse out;
  out.lifecycle = state_text(TaskState::canceling);
  out.task_id = *in.task_id;
  return out;
}

}  // namespace

void add_tasks(OperationTable& table, const Services& services) {
  table.add<aws::CreateDataRepositoryTask>(
      [&](const Context& context, const aws::CreateDataRepositoryTaskRequest& in) {
        return create_task(services, context, in);
      });
  table.add<aws::DescribeDataRepositoryTasks>(
      [&](const Context& context, const aws::DescribeDataRepositoryTasksRequest& in) {
        return describe_tasks(services, context, in);
      });
  table.add<aws::CancelDataRepositoryTask>(
      [&](const Context& context, const aws::CancelDataRepositoryTaskRequest& in) {
        return cancel_task(services, context, in);
      });
}

}  // namespace trainyard::api::fsx

// `trainyard stop` and `trainyard interrupt`: end a job, or interrupt its hosts.
#include "base/text.hpp"
#include "cli/commands.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr Duration kWaitInterval = 500ms;
// Returns the status reason for a Batch job: the name of the caller.
std::string reason_of_caller(CommandContext& context) {
  const auto caller = context.client.call(Service::sts, "GetCallerIdentity", Json::object());
  const std::string arn = caller ? caller->value("Arn", "") : "";
  const std::string name = plain_text(arn.substr(arn.find_last_of(":/") + 1));
  return name.empty() ? "requested by `trainyard stop`" : "requested by " + name;
}

// Rejects a job that has ended: Batch would accept the request and do nothing.
Result<void> check_unfinished(const FoundJob& found) {
  if (!found.job.of_batch() || !found.job.finished()) return {};
  return conflict("job " + label_with_id(found.job) + " has already ended: " + found.job.status);
}

}  // namespace

Result<void> stop_job(CommandContext& context, const FoundJob& found, const std::string& reason) {
  if (!found.job.of_batch()) {
    TRY(call_about(context, found.job.name, Service::sagemaker, "StopTrainingJob",
                   {{"TrainingJobName", found.job.name}}));
    return {};
  }
  TRY(check_unfinished(found));
  TRY(call_about(
      context, found.id(), Service::batch, "TerminateJob",
      {{"jobId", found.id()}, {"reason", reason.empty() ? reason_of_caller(context) : reason}}));
  return {};
}

Result<int> stop_command(CommandContext& context, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(context, arguments.operands[0], JobScope::unfinished));
  const std::string reason = arguments.value("--reason");
  if (!reason.empty() && !found.job.of_batch())
    return invalid("--reason is for jobs of Batch; " + found.job.name + " is a training job");
  TRY(check_unfinished(found));
  if (!arguments.has("--now"))
    TRY(stop_job(context, found, reason));
  else if (!reason.empty())
    return invalid("--now takes no --reason");
  else
    TRY(call_about(context, found.id(), Service::trainyard, "KillJob", {{"JobName", found.id()}}));
  const std::string name = label_with_id(found.job);
  if (!arguments.has("--wait")) {
    TRY(context.terminal.write(name + " is stopping\n"));
    return 0;
  }
  context.terminal.watch_interrupts();
  for (;;) {
    const JobView job = TRY(fetch_job(context, found.job.name));
    if (job.finished()) {
      TRY(context.terminal.write(name + " has ended: " + job.status + "\n"));
      return 0;
    }
    if (context.terminal.wait(kWaitInterval, false, -1).interrupted) return kExitInterrupted;
  }
}

Result<int> interrupt_command(CommandContext& context, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(context, arguments.operands[0], JobScope::unfinished));
  const std::string name = label_with_id(found.job);
  Json question{{"TrainingJobName", found.job.name}};
  if (found.node) question["HostName"] = "algo-" + std::to_string(*found.node + 1);
  if (const auto host = arguments.value("--host"); !host.empty())
    question["HostName"] = "algo-" + std::to_string(TRY(host_index(host)) + 1);
  if (const auto notice = TRY(arguments.duration("--notice")))
    question["NoticeInSeconds"] = *notice / 1s;
  if (const auto reason = arguments.value("--reason"); !reason.empty()) question["Reason"] = reason;
  const Json answer = TRY(
      call_about(context, found.job.name, Service::trainyard, "InterruptTrainingJob", question));
  const std::string message = answer.value("StatusMessage", "");
  TRY(context.terminal.write(name + " was interrupted, and restarts from its checkpoints" +
                             (message.empty() ? "" : ": " + plain_text(message)) + "\n"));
  return 0;
}

}  // namespace trainyard::cli

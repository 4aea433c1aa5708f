// `trainyard stop` and `trainyard interrupt`: end a job, or interrupt its hosts.
#include "base/text.hpp"
#include "cli/commands.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr Duration kWaitInterval = 500ms;

}  // namespace

Result<int> stop_command(World& world, const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  if (arguments.has("--now"))
    TRY(call_about(world, name, Service::trainyard, "KillJob", {{"JobName", name}}));
  else
    TRY(call_about(world, name, Service::sagemaker, "StopTrainingJob",
                   {{"TrainingJobName", name}}));
  if (!arguments.has("--wait")) {
    TRY(world.terminal.write(name + " is stopping\n"));
    return 0;
  }
  world.terminal.watch_interrupts();
  for (;;) {
    const JobView job = TRY(fetch_job(world, name));
    if (job.finished()) {
      TRY(world.terminal.write(name + " has ended: " + job.status + "\n"));
      return 0;
    }
    if (world.terminal.wait(kWaitInterval, false, -1).interrupted) return kExitInterrupted;
  }
}

Result<int> interrupt_command(World& world, const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  Json question{{"TrainingJobName", name}};
  if (const auto host = arguments.value("--host"); !host.empty())
    question["HostName"] = "algo-" + std::to_string(TRY(host_index(host)) + 1);
  if (const auto notice = TRY(arguments.duration("--notice")))
    question["NoticeInSeconds"] = *notice / 1s;
  if (const auto reason = arguments.value("--reason"); !reason.empty()) question["Reason"] = reason;
  const Json answer =
      TRY(call_about(world, name, Service::trainyard, "InterruptTrainingJob", question));
  const std::string message = answer.value("StatusMessage", "");
  TRY(world.terminal.write(name + " is interrupted, and starts again from its checkpoints" +
                           (message.empty() ? "" : ": " + message) + "\n"));
  return 0;
}

}  // namespace trainyard::cli

// `trainyard query`: starts a query of Logs Insights, and shows the result as a table.
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "cli/views/query_view.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kQueryDefaultSpan = 1h;
constexpr Duration kQueryPoll = 500ms;
constexpr const char* kTrainingGroup = "/aws/sagemaker/TrainingJobs";

// Restricts a query to the streams of one training job.
std::string of_job(const std::string& job, const std::string& query) {
  std::string name;  // the characters of names have no meaning in the expression, except for '.'
  for (const char c : job) name += c == '.' ? std::string("\\.") : std::string(1, c);
  return "filter @logStream like /^" + name + "\\// | " + query;
}

bool has_ended(const std::string& status) { return status != "Scheduled" && status != "Running"; }

}  // namespace

Result<int> query_command(CommandContext& context, const Arguments& arguments) {
  std::string query = arguments.operands[0];
  std::string group = arguments.value("--group", kTrainingGroup);
  if (const std::string job = arguments.value("--job"); !job.empty()) {
    const JobView found = TRY(find_job(context, job)).job;
    if (found.of_batch())
      return invalid(
          "--job takes a training job; for jobs of Batch give --group /aws/batch/job, and a filter "
          "of @logStream");
    query = of_job(found.name, query);
  }
  const Duration span = TRY(arguments.duration("--since")).value_or(kQueryDefaultSpan);
  const int64_t now = to_milliseconds(context.clock.now());
  const auto call = [&](const char* operation, const Json& input) {
    return context.client.call(client::Service::logs, operation, input);
  };
  const std::string id = TRY(string_at(TRY(call("StartQuery", {{"logGroupName", group},
                                                               {"startTime", now - span.count()},
                                                               {"endTime", now},
                                                               {"queryString", query}})),
                                       "queryId"));
  context.terminal.watch_interrupts();
  for (;;) {
    const Json answer = TRY(call("GetQueryResults", {{"queryId", id}}));
    const std::string status = TRY(string_at(answer, "status"));
    if (has_ended(status)) {
      if (context.error_style.live) context.terminal.write_error("\r\033[K");
      if (status != "Complete")
        return invalid("the query ended with the status " + status +
                       "; the server's log has the reason");
      TRY(context.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                         : query_table(context.style, answer)));
      context.terminal.write_error("trainyard: " + query_statistics(answer) + "\n");
      return 0;
    }
    if (context.error_style.live)
      context.terminal.write_error("\r\033[K" + query_statistics(answer));
    if (context.terminal.wait(kQueryPoll, false, -1).interrupted) {
      static_cast<void>(call("StopQuery", {{"queryId", id}}));
      context.terminal.write_error("\ntrainyard: the query was stopped\n");
      return kExitInterrupted;
    }
  }
}

}  // namespace trainyard::cli

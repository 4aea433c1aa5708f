// `trainyard explain`: shows why a job waits, and what would make it start.
#include "cli/commands.hpp"
#include "cli/views/explain_view.hpp"

namespace trainyard::cli {

Result<int> explain_command(CommandContext& context, const Arguments& arguments) {
  const JobView job = TRY(find_job(context, arguments.operands[0], JobScope::unfinished)).job;
  const Json answer = TRY(call_about(context, job.name, client::Service::trainyard, "ExplainJob",
                                     {{"JobName", job.name}}));
  TRY(context.terminal.write(
      arguments.has("--json")
          ? dump(answer, 2) + "\n"
          : explain_page(context.style, label_with_id(job), answer, context.clock.now())));
  return 0;
}

}  // namespace trainyard::cli

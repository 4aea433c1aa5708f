// `trainyard explain`: shows why a job waits, and what would make it start.
#include "cli/commands.hpp"
#include "cli/views/explain_view.hpp"

namespace trainyard::cli {

Result<int> explain_command(World& world, const Arguments& arguments) {
  const JobView job = TRY(find_job(world, arguments.operands[0], Meant::unfinished)).job;
  const Json answer = TRY(call_about(world, job.name, client::Service::trainyard, "ExplainJob",
                                     {{"JobName", job.name}}));
  TRY(world.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                   : explain_page(world.looks, label_with_id(job),
                                                                  answer, world.clock.now())));
  return 0;
}

}  // namespace trainyard::cli

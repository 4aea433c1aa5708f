// `trainyard time`: shows what the time of one job, or of many, was used for.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/views/time_view.hpp"

namespace trainyard::cli {
namespace {

constexpr std::string_view kTimeGroupings[] = {"user", "queue", "month", "job"};

Result<int> time_of_job(CommandContext& context, const Arguments& arguments) {
  for (const char* option : {"--by", "--since"})
    if (!arguments.value(option).empty())
      return invalid(std::string(option) + " is for the time of all jobs; leave out the job");
  const JobView job = TRY(find_job(context, arguments.operands[0])).job;
  const Json answer = TRY(call_about(context, job.name, client::Service::trainyard,
                                     "DescribeJobTime", {{"JobName", job.name}}));
  TRY(context.terminal.write(arguments.has("--json")
                                 ? dump(answer, 2) + "\n"
                                 : time_page(context.style, label_with_id(job), answer)));
  return 0;
}

}  // namespace

Result<int> time_command(CommandContext& context, const Arguments& arguments) {
  if (!arguments.operands.empty()) return time_of_job(context, arguments);
  const std::string by = arguments.value("--by", "month");
  if (std::ranges::find(kTimeGroupings, by) == std::end(kTimeGroupings))
    return invalid("--by: unknown grouping '" + by + "': use user, queue, month or job");
  const Duration since = TRY(arguments.duration("--since")).value_or(30 * 24h);
  const Json answer = TRY(context.client.call(
      client::Service::trainyard, "GetTimeReport",
      {{"GroupBy", by}, {"CreationTimeAfter", to_seconds(context.clock.now() - since)}}));
  TRY(context.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                     : time_table(context.style, by, answer)));
  return 0;
}

}  // namespace trainyard::cli

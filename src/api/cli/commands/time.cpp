// `trainyard time`: shows what the time of one job, or of many, was used for.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/views/time_view.hpp"

namespace trainyard::cli {
namespace {

constexpr std::string_view kTimeGroupings[] = {"user", "queue", "month", "job"};

Result<int> time_of_job(World& world, const Arguments& arguments) {
  for (const char* option : {"--by", "--since"})
    if (!arguments.value(option).empty())
      return invalid(std::string(option) + " is for the time of all jobs; leave out the job");
  const JobView job = TRY(find_job(world, arguments.operands[0])).job;
  const Json answer = TRY(call_about(world, job.name, client::Service::trainyard, "DescribeJobTime",
                                     {{"JobName", job.name}}));
  TRY(world.terminal.write(arguments.has("--json")
                               ? dump(answer, 2) + "\n"
                               : time_page(world.looks, label_with_id(job), answer)));
  return 0;
}

}  // namespace

Result<int> time_command(World& world, const Arguments& arguments) {
  if (!arguments.operands.empty()) return time_of_job(world, arguments);
  const std::string by = arguments.value("--by", "month");
  if (std::ranges::find(kTimeGroupings, by) == std::end(kTimeGroupings))
    return invalid("--by: unknown grouping '" + by + "': use user, queue, month or job");
  const Duration since = TRY(arguments.duration("--since")).value_or(30 * 24h);
  const Json answer = TRY(world.client.call(
      client::Service::trainyard, "GetTimeReport",
      {{"GroupBy", by}, {"CreationTimeAfter", to_seconds(world.clock.now() - since)}}));
  TRY(world.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                   : time_table(world.looks, by, answer)));
  return 0;
}

}  // namespace trainyard::cli

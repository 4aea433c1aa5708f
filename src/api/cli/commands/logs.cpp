// `trainyard logs`.
#include "cli/commands.hpp"
#include "cli/log_follower.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kFollowInterval = 1s;

}  // namespace

Result<int> logs_command(World& world, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(world, arguments.operands[0]));
  const std::string& name = found.job.name;
  LogChoice choice{found.node, {}};
  if (const auto host = arguments.value("--host"); !host.empty())
    choice.host = TRY(host_index(host));
  if (const auto since = TRY(arguments.duration("--since")))
    choice.since = world.clock.now() - *since;
  const bool follow = arguments.has("--follow");
  if (follow) world.terminal.watch_interrupts();
  const auto follower = TRY(follow_log(world.client, found.job, choice));
  bool silent = true;
  const auto print = [&](const std::vector<LogLine>& lines) -> Result<void> {
    silent = false;
    std::string text;
    for (const LogLine& line : lines) {
      if (arguments.has("--times"))
        text +=
            paint(world.looks, Paint::dim, to_iso8601(from_milliseconds(line.at_milliseconds))) +
            " ";
      text += log_line(world.looks, line, follower->widest());
    }
    return world.terminal.write(text);
  };
  for (;;) {
    // Reads the state before the log, so that the log of an ended job is complete.
    const JobView job = TRY(fetch_job(world, name));
    TRY(follower->round(job.finished(), print));
    if (!follow && silent)
      world.terminal.write_error("trainyard: no lines of " + label_of(job) + " (" +
                                 status_text(job) + ")\n");
    if (!follow) return 0;
    if (job.finished()) {
      world.terminal.write_error(
          paragraph(world.error_looks, "trainyard: " + label_of(job) + " " + job.status +
                                           (job.reason().empty() ? "" : ": " + job.reason())));
      return exit_code_of(job.status);
    }
    if (world.terminal.wait(kFollowInterval, false, -1).interrupted) {
      world.terminal.write_error("\ntrainyard: " + name + " keeps running; `trainyard stop " +
                                 name + "` stops it\n");
      return kExitInterrupted;
    }
  }
}

}  // namespace trainyard::cli

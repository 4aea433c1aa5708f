// `trainyard logs`.
#include "cli/commands.hpp"
#include "cli/log_follower.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kFollowInterval = 1s;

}  // namespace

Result<int> logs_command(World& world, const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  LogChoice choice{name, "", {}};
  if (const auto host = arguments.value("--host"); !host.empty())
    choice.host = "algo-" + std::to_string(TRY(host_index(host)) + 1);
  if (const auto since = TRY(arguments.duration("--since")))
    choice.since = world.clock.now() - *since;
  const bool follow = arguments.has("--follow");
  if (follow) world.terminal.watch_interrupts();
  LogFollower follower(world.client, choice);
  const auto print = [&](const std::vector<LogLine>& lines) -> Result<void> {
    std::string text;
    for (const LogLine& line : lines) {
      if (arguments.has("--times"))
        text +=
            paint(world.looks, Paint::dim, to_iso8601(from_milliseconds(line.at_milliseconds))) +
            " ";
      text += log_line(world.looks, line, follower.widest());
    }
    return world.terminal.write(text);
  };
  for (;;) {
    // Reads the state before the log, so that the log of an ended job is complete.
    const JobView job = TRY(fetch_job(world, name));
    TRY(follower.round(print));
    if (!follow) return 0;
    if (job.finished()) {
      world.terminal.write_error("trainyard: " + name + " " + job.status +
                                 (job.failure_reason.empty() ? "" : ": " + job.failure_reason) +
                                 "\n");
      return exit_code_of(job.status);
    }
    if (world.terminal.wait(kFollowInterval, false, -1).interrupted) {
      world.terminal.write_error("\ntrainyard: " + name + " goes on; `trainyard stop " + name +
                                 "` ends it\n");
      return kExitInterrupted;
    }
  }
}

}  // namespace trainyard::cli

// `trainyard logs`: prints the log of a job, and follows it.
#include "cli/commands.hpp"
#include "cli/log_follower.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kFollowInterval = 1s;

}  // namespace

Result<int> logs_command(CommandContext& context, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(context, arguments.operands[0]));
  const std::string& name = found.job.name;
  LogChoice choice{found.node, {}};
  if (const auto host = arguments.value("--host"); !host.empty())
    choice.host = TRY(host_index(host));
  if (const auto since = TRY(arguments.duration("--since")))
    choice.since = context.clock.now() - *since;
  const bool follow = arguments.has("--follow");
  if (follow) context.terminal.watch_interrupts();
  const auto follower = TRY(follow_log(context.client, found.job, choice));
  bool silent = true;
  const auto print = [&](const std::vector<LogLine>& lines) -> Result<void> {
    silent = false;
    std::string text;
    for (const LogLine& line : lines) {
      if (arguments.has("--times"))
        text +=
            paint(context.style, Paint::dim, to_iso8601(from_milliseconds(line.at_milliseconds))) +
            " ";
      text += log_line(context.style, line, follower->widest());
    }
    return context.terminal.write(text);
  };
  for (;;) {
    // Reads the state before the log, so that the log of an ended job is complete.
    const JobView job = TRY(fetch_job(context, name));
    TRY(follower->round(job.finished(), print));
    if (!follow && silent)
      context.terminal.write_error("trainyard: no lines of " + label_of(job) + " (" +
                                   status_text(job) + ")\n");
    if (!follow) return 0;
    if (job.finished()) {
      context.terminal.write_error(
          paragraph(context.error_style, "trainyard: " + label_of(job) + " " + job.status +
                                             (job.reason().empty() ? "" : ": " + job.reason())));
      return exit_code_of(job.status);
    }
    if (context.terminal.wait(kFollowInterval, false, -1).interrupted) {
      context.terminal.write_error("\ntrainyard: " + name + " keeps running; `trainyard stop " +
                                   name + "` stops it\n");
      return kExitInterrupted;
    }
  }
}

}  // namespace trainyard::cli

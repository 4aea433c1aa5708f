// Child processes, started with nothing inherited that was not named: no descriptor but the three streams, no
// blocked or ignored signal.
//
// Threads: callable from anywhere. Errors: not_found (no such program), denied, exhausted.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

struct Command {
  std::vector<std::string> arguments;              // arguments[0] found on our PATH
  std::map<std::string, std::string> environment;  // added to ours
  std::string input;                               // given on standard input; "" = /dev/null
  std::string working_directory;                   // "" = ours
  Duration at_most = 60s;  // killed after, with all that it started in its process group
  // Asked each kWatchInterval while it runs, on the caller's thread: false kills it, as if its time were over.
  std::function<bool()> watch = {};
};
inline constexpr Duration kWatchInterval = 200ms;  // often enough for people, too seldom to cost anything

struct Outcome {
  int code = 0;        // 128+n when ended by signal n
  std::string output;  // standard output, up to 16 MiB
  std::string errors;  // standard error, up to 1 MiB
};

// Runs until the program itself ends; what it leaves running in the background is not waited for. A code
// other than 0 is an Outcome, not an error. Errors: cancelled, when killed for taking too long.
Result<Outcome> run(const Command& command);
// Runs; a code other than 0 is `internal`, carrying the program's own last words.
Result<std::string> run_or_fail(const Command& command);

// Starts a process that outlives us: its own session, no child of ours (who ends it need not collect it),
// standard streams to `log_file` (appended, made 0600), input from `input`, or from /dev/null (-1), `environment` added to
// ours. `own_processes`: the first of a PID namespace, so that all it starts ends with it; the answer is its number here.
Result<pid_t> start_detached(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& environment,
                             const std::string& log_file, bool own_processes = false, int input = -1);

// The folder of the running program, links resolved: where our other programs lie.
std::string program_directory();
// Whether a program of that name is on PATH (or, with a '/' in it, is there and can be run).
bool on_path(const std::string& program);

}  // namespace trainyard::os

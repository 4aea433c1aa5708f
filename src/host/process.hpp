// Child processes, started with nothing inherited that was not named.
//
// Threads: callable from anywhere. Errors: not_found (no such program), denied, exhausted.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::host {

struct Command {
  std::vector<std::string> arguments;  // arguments[0] found on PATH
  std::map<std::string, std::string> environment;  // added to ours
  std::string input;                   // given on standard input
  std::string working_directory;
  Duration at_most = 60s;              // killed after
};

struct Outcome {
  int code = 0;  // 128+n when ended by signal n
  std::string output;  // standard output, up to 16 MiB
  std::string errors;  // standard error, up to 1 MiB
};

// Runs to the end. A code other than 0 is an Outcome, not an error.
Result<Outcome> run(const Command& command);
// Runs; a code other than 0 is `internal`, carrying the program's own last words.
Result<std::string> run_or_fail(const Command& command);

// Starts a process that outlives us: its own session, standard streams to `log_file`, no descriptor of ours.
Result<pid_t> start_detached(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
                             const std::string& log_file);

// The folder of the running program, links resolved: where our other programs lie.
std::string program_directory();
// Whether a program of that name is on PATH.
bool on_path(const std::string& program);

}  // namespace trainyard::host

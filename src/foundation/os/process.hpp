// Starts child processes, which inherit only what is named: no descriptor but the three streams,
// and no blocked or ignored signal.
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
  std::vector<std::string> arguments;              // arguments[0] is searched on our PATH
  std::map<std::string, std::string> environment;  // added to `inherited`
  std::string input;                               // content of standard input; "" = /dev/null
  std::string working_directory;                   // "" = ours
  Duration at_most = 60s;  // then it is killed, with all processes of its process group
  // Called each kWatchInterval while it runs, on the caller's thread: false kills it, as at the end
  // of its time.
  std::function<bool()> watch = {};
  // It is the first process of a PID namespace, so that all processes that it starts end with it.
  bool own_processes = false;
  // Names of our environment that it gets; nullopt: all.
  std::optional<std::vector<std::string>> inherited;
};
// often enough for people, rarely enough to cost nothing
inline constexpr Duration kWatchInterval = 200ms;

// The limit of a program's output; the rest is read and dropped.
inline constexpr size_t kOutputBytesMax = 16 << 20;

struct Outcome {
  int code = 0;             // 128+n when ended by signal n
  std::string output;       // standard output, up to 16 MiB
  std::string errors;       // standard error, up to 1 MiB
  bool output_cut = false;  // the program printed more than `output` has
};

// Runs until the program itself ends, without waiting for processes that it leaves in the
// background. A code other than 0 is an Outcome, not an error. Errors: cancelled, when killed for
// taking too long.
Result<Outcome> run(const Command& command);
// Runs a program; a code other than 0 is `internal`, with the program's last output in the message.
Result<std::string> run_or_fail(const Command& command);

// Starts a process that outlives us: in a session of its own and not our child (so it need not be
// waited for), with standard streams to `log_file` (appended, made 0600), input from `input`, or
// from /dev/null (-1), and `environment` added to ours. `own_processes`: it is the first of a PID
// namespace, so that its children end with it; the result is its number here.
Result<pid_t> start_detached(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& environment,
                             const std::string& log_file, bool own_processes = false,
                             int input = -1);

// Starts a child that runs next to us, in a process group of its own: its standard input is
// `input`, what it prints is dropped. Its number is its own until reap_child() has returned true.
Result<pid_t> spawn_child(const std::vector<std::string>& arguments, int input);
// Waits for the end of such a child, at most this long: a killed process may stay in the kernel for
// as long as a driver hangs. Returns true if it has ended.
bool reap_child(pid_t child, Duration at_most);

// Returns the folder of the running program, links resolved, in which our other programs lie.
std::string program_directory();
// True if a program of that name is on PATH (or, for a name with '/', exists and is executable).
bool on_path(const std::string& program);

}  // namespace trainyard::os

// Runs and starts child processes. They inherit only what the caller names: no descriptors except
// the three standard streams, and no blocked or ignored signals.
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
  std::vector<std::string> arguments;  // arguments[0] is searched on PATH of this process
  std::map<std::string, std::string> environment;  // added to `inherited`
  std::string input;                               // content of standard input; "": /dev/null
  std::string working_directory;                   // "": that of this process
  Duration at_most = 60s;                          // after that the process group is killed
  // Called every kWatchInterval while the program runs, on the caller's thread. If it returns
  // false, the process group is killed.
  std::function<bool()> watch = {};
  // The program is the first process of a new PID namespace, so all processes that it starts end
  // with it.
  bool own_pid_namespace = false;
  // Names of the variables that it inherits from this process; nullopt: all.
  std::optional<std::vector<std::string>> inherited;
};
// often enough for interactive use, and rarely enough to cost hardly any CPU
inline constexpr Duration kWatchInterval = 200ms;

// limit of a program's output; the rest is read and dropped
inline constexpr size_t kOutputBytesMax = 16 << 20;

struct Outcome {
  int code = 0;             // exit code; 128+n: ended by signal n
  std::string output;       // standard output, up to kOutputBytesMax
  std::string errors;       // standard error, up to 1 MiB
  bool output_cut = false;  // the program printed more than `output` has
};

// Runs a program and waits until it ends, but not for processes that it leaves in the background.
// An exit code other than 0 is an Outcome, not an error. Errors also: cancelled, if the program was
// killed after at_most or by watch().
Result<Outcome> run(const Command& command);
// Runs a program and returns its output. An exit code other than 0 is an error (internal), with the
// last output of the program in the message.
Result<std::string> run_or_fail(const Command& command);

// Starts a process that outlives this one. It leads its own session and is not a child of this
// process, so it need not be waited for. Its output is appended to `log_file` (made with mode
// 0600), its input is `input` (-1: /dev/null), and `environment` is added to that of this process.
// `own_pid_namespace`: it is the first process of a new PID namespace, so its children end with it.
// Returns its number in this process's PID namespace.
Result<pid_t> start_detached(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& environment,
                             const std::string& log_file, bool own_pid_namespace = false,
                             int input = -1);

// Starts a child process and does not wait for it. It leads its own process group, its standard
// input is `input`, and its output is dropped. Its process id stays valid until reap_child() has
// returned true.
Result<pid_t> spawn_child(const std::vector<std::string>& arguments, int input);
// Waits at most this long for the end of such a child: a killed process stays in the kernel for as
// long as a driver hangs. Returns true if it has ended.
bool reap_child(pid_t child, Duration at_most);

// Returns the directory of the running program, with links resolved. The other programs of
// Trainyard are in the same directory.
std::string program_directory();
// Returns true if a program with this name is on PATH or, for a name with '/', exists and is
// executable.
bool on_path(const std::string& program);

}  // namespace trainyard::os

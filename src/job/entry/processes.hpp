// Processes that entry starts, and the few questions that it asks of the container's file system.
//
// Every process is the first of its own process group, reads from /dev/null, and inherits nothing but its three
// streams.
//
// Threads: callable from anywhere. Errors: not_found (no such program), denied, exhausted.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "entry/settings.hpp"
#include "os/files.hpp"

namespace trainyard::entry {

struct Command {
  std::vector<std::string> arguments;  // arguments[0] is found on PATH of variables
  Variables variables;                 // all of its environment
  std::string directory = "/";
  std::vector<int> cpus = {};  // on which it runs, as far as we may ourselves; none: where we do
  bool catch_output = false;   // else it is ours
  bool catch_errors = false;
};

struct Running {
  pid_t process = 0;
  os::File output, errors;  // what was asked for: ends of pipes that do not block
};

Result<Running> start(const Command& command);

// The path of a program on a PATH; "" when there is none.
std::string find_program(std::string_view name, std::string_view path);

// 0..255, 128+n for a signal, of what waitpid gave.
int exit_code_of(int status);

// Appends some of what a pipe holds now; false at its end.
bool read_available(const os::File& pipe, std::string& text);
// All of it, whatever else happens.
void write_all(int descriptor, std::string_view text);

// Cores that this process may run on.
int count_cpus();

}  // namespace trainyard::entry

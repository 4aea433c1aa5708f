// Starts processes for entry, and searches programs in the container's file system.
//
// Every process leads its own process group, reads from /dev/null, and inherits nothing but its
// three streams.
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
  std::vector<std::string> arguments;  // arguments[0] is searched on PATH of variables
  Variables variables;                 // its whole environment
  std::string directory = "/";
  // The processors on which it runs, as far as this process may use them; empty: as this process.
  std::vector<int> cpus = {};
  bool catch_output = false;  // else it is inherited
  bool catch_errors = false;
};

struct Running {
  pid_t process = 0;
  os::File output, errors;  // the requested ones: ends of pipes that do not block
};

Result<Running> start(const Command& command);

// Returns the path of a program on a PATH; "" when it is missing.
std::string find_program(std::string_view name, std::string_view path);

// Converts a status of waitpid to an exit code: 0..255, or 128+n for signal n.
int exit_code_of(int status);

// Appends available bytes of a pipe to `text`; returns false at the end of the pipe.
bool read_available(const os::File& pipe, std::string& text);
// Writes the whole text. Ignores errors.
void write_all(int descriptor, std::string_view text);

// Returns the number of cores that this process may run on.
int count_cpus();

}  // namespace trainyard::entry

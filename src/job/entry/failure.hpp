// Describes for users why a process failed: the exception of a Python traceback, the signal, the
// last output.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::entry {

// The bytes that are kept of a process's standard error, and of its whole output: a traceback of
// the usual depth and the lines after it.
inline constexpr size_t kLastOutputBytesMax = 16 << 10;

// The end of what a process printed.
struct Printed {
  std::string errors;
  // Both streams, in the order of arrival; "" = only `errors` is known.
  std::string all = {};
};

// A process that failed.
struct Failure {
  std::string host;
  int rank = 0;
  int code = 1;      // 128+n when ended by signal n
  std::string text;  // for the failure file
};

// Returns the exception of the last traceback in a process's output ("ValueError: no such column"),
// without the prefixes that launchers add to lines; "" without a traceback.
std::string last_exception(std::string_view printed);
// Returns the complete last traceback, including its exception; "" without one.
std::string last_traceback(std::string_view printed);
// Returns the last lines, at most contract::kLastLinesMax and `bytes_max` bytes.
std::string last_lines(std::string_view printed, size_t bytes_max);

// Returns the failure file's text: the error first, then host and rank, then details; the essential
// part is in the first kFailureCharactersMax characters. Without an exception, the details are the
// last lines of the output. `title` is AWS's name of the kind of fault: "ExecuteUserScriptError".
std::string describe_failure(std::string_view title, const Failure& failure, bool with_rank,
                             const Printed& printed, std::string_view command);

}  // namespace trainyard::entry

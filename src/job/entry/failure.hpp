// Why a process failed, told for people: the exception of a Python traceback, the signal, the last words.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::entry {

// What is kept of a process's standard error: a traceback of the usual depth and what was printed after it.
inline constexpr size_t kLastWordsBytesMax = 16 << 10;

// A process that ended badly.
struct Failure {
  std::string host;
  int rank = 0;
  int code = 1;      // 128+n when ended by signal n
  std::string text;  // of the failure file
};

// "SIGKILL" for 9.
std::string signal_name(int number);
// "ValueError: no such column" of the last traceback in what a process printed, "" when there is none. Prefixes
// that launchers put before lines are left out.
std::string last_exception(std::string_view printed);
// The last traceback, whole, with its exception; "" when there is none.
std::string last_traceback(std::string_view printed);
// The last lines, at most so many bytes.
std::string last_lines(std::string_view printed, size_t bytes_max);

// The failure file's text: what went wrong first, then host and rank, then details; what matters stands in the
// first kFailureCharactersMax characters. `title` is the kind of fault, as AWS calls it:
// "ExecuteUserScriptError".
std::string describe_failure(std::string_view title, const Failure& failure, bool with_rank,
                             std::string_view printed, std::string_view command);

}  // namespace trainyard::entry

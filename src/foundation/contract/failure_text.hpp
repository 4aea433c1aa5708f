// Describes for users how a process ended, and shortens such texts to what FailureReason shows.
//
// Threads: pure functions. Errors: none. Units: bytes of UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::contract {

// FailureReason's 1,024, less "AlgorithmError: " and ", exit code: 255 (algo-10000)": a longer text
// is cut at its end.
inline constexpr size_t kShownBytesMax = 979;
// Lines of output that are shown for a process that raised no exception.
inline constexpr size_t kLastLinesMax = 20;

// "SIGKILL" for 9.
std::string signal_name(int number);
// Returns "killed by SIGSEGV (segmentation fault)" for 139, as shells write a signal; "" for a code
// of the process's own.
std::string describe_signal(int exit_code);

// Returns the last lines, whole ones; of a last line that is too long, its start.
std::string last_lines(std::string_view text, size_t bytes_max, size_t lines_max = kLastLinesMax);
// Returns the first line, which says what failed, and as many of the last lines as fit with it.
std::string fit_lines(std::string_view text, size_t bytes_max, size_t lines_max = kLastLinesMax);

// Returns SageMaker's text for a channel without objects.
std::string no_objects_text(std::string_view s3_uri);

}  // namespace trainyard::contract

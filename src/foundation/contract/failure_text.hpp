// Describes for users how a process ended, and shortens such texts to the length of FailureReason.
//
// Threads: pure functions. Errors: none. Units: bytes of UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::contract {

// The limit of the text in a FailureReason: 1,024, minus "AlgorithmError: " and ", exit code: 255
// (algo-10000)". Longer texts are truncated.
inline constexpr size_t kShownBytesMax = 979;
// The limit of lines of output that are shown for a process that raised no exception.
inline constexpr size_t kLastLinesMax = 20;

// Returns "SIGKILL" for 9.
std::string signal_name(int number);
// Returns "killed by SIGSEGV (segmentation fault)" for 139, the exit code of shells for this
// signal; "" for a code that is not a signal.
std::string describe_signal(int exit_code);

// Returns as many whole last lines as fit; if the last line is too long, its start.
std::string last_lines(std::string_view text, size_t bytes_max, size_t lines_max = kLastLinesMax);
// Returns the first line, which names the failure, and as many of the last lines as fit.
std::string fit_lines(std::string_view text, size_t bytes_max, size_t lines_max = kLastLinesMax);

// Returns SageMaker's text for a channel without objects.
std::string no_objects_text(std::string_view s3_uri);

}  // namespace trainyard::contract

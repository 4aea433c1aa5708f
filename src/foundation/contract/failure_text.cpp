#include "contract/failure_text.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::contract {
namespace {

constexpr int kSignalExitBase = 128;
constexpr int kSignalsMax = 64;

// The signals of Linux, with the texts of shells and kernels, for which users search.
struct Signal {
  int number;
  const char* name;
  const char* message;
};
constexpr Signal kSignals[] = {{1, "SIGHUP", "hangup"},
                               {2, "SIGINT", "interrupt"},
                               {3, "SIGQUIT", "quit"},
                               {4, "SIGILL", "illegal instruction"},
                               {5, "SIGTRAP", "trap"},
                               {6, "SIGABRT", "aborted"},
                               {7, "SIGBUS", "bus error"},
                               {8, "SIGFPE", "arithmetic error"},
                               {9, "SIGKILL", ""},
                               {10, "SIGUSR1", ""},
                               {11, "SIGSEGV", "segmentation fault"},
                               {12, "SIGUSR2", ""},
                               {13, "SIGPIPE", "broken pipe"},
                               {14, "SIGALRM", ""},
                               {15, "SIGTERM", "terminated"},
                               {24, "SIGXCPU", "processor time limit"},
                               {25, "SIGXFSZ", "file size limit"},
                               {31, "SIGSYS", "forbidden system call"}};

}  // namespace

std::string signal_name(int number) {
  for (const Signal& each : kSignals)
    if (each.number == number) return each.name;
  return "signal " + std::to_string(number);
}

std::string describe_signal(int exit_code) {
  const int number = exit_code - kSignalExitBase;
  if (number < 1 || number > kSignalsMax) return "";
  std::string text = "killed by " + signal_name(number);
  for (const Signal& each : kSignals)
    if (each.number == number && *each.message) text += std::string(" (") + each.message + ")";
  return text;
}

std::string last_lines(std::string_view text, size_t bytes_max, size_t lines_max) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  size_t begin = text.size();
  for (size_t lines = 0; lines < lines_max && begin > 0; ++lines) {
    const size_t line_end = begin == text.size() ? begin : begin - 1;  // without its newline
    const size_t newline = line_end == 0 ? std::string_view::npos : text.rfind('\n', line_end - 1);
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (text.size() - line_begin > bytes_max) {
      if (lines == 0) return shorten(text.substr(line_begin), bytes_max);
      break;
    }
    begin = line_begin;
  }
  return std::string(text.substr(begin));
}

std::string fit_lines(std::string_view text, size_t bytes_max, size_t lines_max) {
  const size_t head_end = text.find('\n');
  std::string fitted = shorten(text.substr(0, head_end), bytes_max);
  if (head_end == std::string_view::npos || fitted.size() + 1 >= bytes_max) return fitted;
  const std::string rest =
      last_lines(text.substr(head_end + 1), bytes_max - fitted.size() - 1, lines_max);
  return rest.empty() ? fitted : fitted + "\n" + rest;
}

std::string no_objects_text(std::string_view s3_uri) {
  return "No S3 objects found under S3 URL \"" + std::string(s3_uri) +
         "\" given in input data source. Please ensure that objects exist under that S3 prefix.";
}

}  // namespace trainyard::contract

#include "entry/failure.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "contract/failure_text.hpp"

namespace trainyard::entry {
namespace {

constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";
// FailureReason shows a thousand characters: most of them for the exception, the rest for its last
// frames.
constexpr size_t kExceptionBytesMax = 600;
// The limit of the last line of a process without an exception; the lines before it follow.
constexpr size_t kLastLineBytesMax = 200;
constexpr size_t kDetailBytesMax = 700;
constexpr size_t kCommandBytesMax = 200;

// Removes launchers' prefixes ("[rank3]: ", "[1,3]<stderr>:") and colours from a line.
std::string bare(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
      continue;
    }
    if (line[i] != '\r') text += line[i];
  }
  if (text.starts_with("[rank")) {
    const size_t end = text.find("]: ");
    if (end != std::string::npos && end < 16) return text.substr(end + 3);
    if (text.ends_with("]:")) return "";
  }
  if (text.starts_with('[')) {
    for (const std::string_view mark : {"<stderr>:", "<stdout>:", "<stddiag>:"}) {
      const size_t at = text.find(mark);
      if (at != std::string::npos && at < 48) return text.substr(at + mark.size());
    }
  }
  return text;
}

std::vector<std::string> bare_lines(std::string_view printed) {
  std::vector<std::string> lines;
  for (const auto line : split(printed, '\n')) lines.push_back(bare(line));
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  return lines;
}

// Returns the last message of OpenMPI, which it frames with two lines of dashes, as one line; ""
// when there is none at the end.
std::string framed_output(std::string_view printed) {
  const auto lines = bare_lines(printed);
  const auto is_frame = [](const std::string& line) {
    return line.size() >= 16 && line.find_first_not_of('-') == std::string::npos;
  };
  if (lines.size() < 3 || !is_frame(lines.back())) return "";
  size_t begin = lines.size() - 1;
  while (begin > 0 && !is_frame(lines[begin - 1])) --begin;
  if (begin == 0) return "";
  std::string message;
  for (size_t i = begin; i + 1 < lines.size() && !trim(lines[i]).empty(); ++i)
    message += (message.empty() ? "" : " ") + std::string(trim(lines[i]));
  return message;
}

// The lines [begin, exception] of the last traceback.
struct Traceback {
  size_t begin = 0, exception = 0;
  bool found = false;
};

Traceback find_traceback(const std::vector<std::string>& lines) {
  Traceback traceback;
  for (size_t i = lines.size(); i-- > 0;) {
    if (!trim(lines[i]).starts_with(kTracebackHead)) continue;
    traceback.begin = i;
    // Frames are indented; the first line without indentation is the exception.
    size_t at = i + 1;
    while (at < lines.size() && (lines[at].starts_with(' ') || lines[at].empty())) ++at;
    if (at >= lines.size()) continue;  // truncated: an earlier traceback may be complete
    traceback.exception = at;
    traceback.found = true;
    return traceback;
  }
  return traceback;
}

std::string last_line(std::string_view printed) {
  const auto lines = bare_lines(printed);
  return lines.empty() ? "" : shorten(trim(lines.back()), kLastLineBytesMax);
}

std::string joined(const std::vector<std::string>& lines, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : "\n") + lines[i];
  return text;
}

// Returns the exception with further lines of its message, up to a blank line.
size_t end_of_exception(const std::vector<std::string>& lines, const Traceback& traceback) {
  size_t end = traceback.exception + 1;
  while (end < lines.size() && end < traceback.exception + 8 && !trim(lines[end]).empty() &&
         !trim(lines[end]).starts_with(kTracebackHead))
    ++end;
  return end;
}

std::string how_it_ended(int code) {
  const std::string by_signal = contract::describe_signal(code);
  return by_signal.empty() ? "exit code " + std::to_string(code) : by_signal;
}

}  // namespace

std::string last_exception(std::string_view printed) {
  const auto lines = bare_lines(printed);
  const auto traceback = find_traceback(lines);
  if (!traceback.found) return "";
  return joined(lines, traceback.exception, end_of_exception(lines, traceback));
}

std::string last_traceback(std::string_view printed) {
  const auto lines = bare_lines(printed);
  const auto traceback = find_traceback(lines);
  if (!traceback.found) return "";
  return joined(lines, traceback.begin, end_of_exception(lines, traceback));
}

std::string last_lines(std::string_view printed, size_t bytes_max) {
  const auto lines = bare_lines(printed);
  return contract::last_lines(joined(lines, 0, lines.size()), bytes_max);
}

std::string describe_failure(std::string_view title, const Failure& failure, bool with_rank,
                             const Printed& printed, std::string_view command) {
  const std::string where =
      failure.host + (with_rank ? ", rank " + std::to_string(failure.rank) : "");
  const std::string exception = last_exception(printed.errors);
  std::string what = shorten(exception, kExceptionBytesMax);
  if (what.empty()) what = shorten(framed_output(printed.errors), kExceptionBytesMax);
  const std::string output = printed.all.empty() ? printed.errors : printed.all;
  if (what.empty()) what = last_line(output);
  const std::string ended = where + ", " + how_it_ended(failure.code);
  std::string text = std::string(title) + ": ";
  text += what.empty() ? ended + "; it printed nothing" : what + " (" + ended + ")";
  if (!command.empty()) text += "\nCommand \"" + shorten(command, kCommandBytesMax) + "\"";
  text = to_utf8(text);
  if (!exception.empty()) {
    std::string traceback = last_traceback(printed.errors);
    // The last frames are nearest to the error.
    if (traceback.size() > kDetailBytesMax)
      traceback = "..\n" + last_lines(traceback, kDetailBytesMax);
    return text + "\n" + to_utf8(traceback);
  }
  const size_t detail_bytes_max =
      contract::kShownBytesMax - std::min(contract::kShownBytesMax, text.size() + 1);
  const std::string details = to_utf8(last_lines(output, detail_bytes_max));
  return details.empty() || details == what ? text : text + "\n" + details;
}

}  // namespace trainyard::entry

#include "agent/driver_failure.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.hpp"
#include "contract/failure_text.hpp"

namespace trainyard::agent {
namespace {

constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";
constexpr std::string_view kDriverDirectory = "/sm_drivers/";
constexpr std::string_view kGenericFailure = "Training Execution failed.";
constexpr std::string_view kDriverSays = "Command failed with exit code ";
constexpr std::string_view kShellHandler =
    "handle_error";  // a function of the SDK's shell script, as its trace prints it
constexpr std::string_view kCommandHead = "Executing command: ";
// Loggers of torchrun: its former and its current form.
constexpr std::string_view kTorchLoggers[] = {"torch.distributed.elastic",
                                              "torch/distributed/elastic"};
constexpr std::string_view kTorchReport = "failed (exitcode: ";
// Exceptions of launchers, which say that one of their processes failed.
constexpr std::string_view kLauncherErrors[] = {
    "subprocess.CalledProcessError",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"};
constexpr std::string_view kMpiDriver = "/distributed_drivers/mpi_";
// The MPI driver of version 3 connects hosts by ssh, with paramiko and with the program `ssh`.
struct DriverHint {
  std::string_view exception;  // a part of its line
  std::string_view hint;
};
constexpr DriverHint kMpiHints[] = {
    {"No module named 'paramiko'",
     "the SDK's MPI driver needs it: add paramiko to requirements.txt; on several hosts the image "
     "must also have sshd, and keys with which they reach each other: Torchrun needs neither"},
    {"SSH daemon not found.",
     "the SDK's MPI driver starts /usr/sbin/sshd, which the image must have: Torchrun needs none"},
    {"to be reachable.",
     "the SDK's MPI driver connects the hosts by ssh: the image must have keys with which they "
     "reach each other: Torchrun needs none"}};
constexpr size_t kExceptionBytesMax = 600;
constexpr size_t kFramesBytesMax = 700;

// Removes torch's prefix ("[rank3]: ") and the indentation.
std::string_view bare(std::string_view line) {
  line = trim(line);
  if (line.starts_with("[rank"))
    if (const size_t end = line.find("]: "); end != line.npos && end < 16)
      line = trim(line.substr(end + 3));
  return line;
}

// True for "KeyError: 'x'", "torch.cuda.OutOfMemoryError", and not for a line of code.
bool is_exception(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(": "));
  const bool identifier = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.';
  });
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return identifier && !last.empty() && last[0] >= 'A' && last[0] <= 'Z';
}

// Removes the "++ " with which the SDK's shell script traces its commands; nullopt: not such a
// line.
std::optional<std::string_view> traced(std::string_view line) {
  const size_t pluses = line.find_first_not_of('+');
  if (pluses == line.npos || pluses < 2 || line[pluses] != ' ') return {};
  return line.substr(pluses + 1);
}

bool ends_script(std::string_view line) {
  return line.starts_with(kDriverSays) || traced(line) == kShellHandler;
}

bool is_of_torchrun(std::string_view line) {
  return std::ranges::any_of(
      kTorchLoggers, [&](std::string_view logger) { return line.find(logger) != line.npos; });
}

struct Exception {
  size_t traceback = 0, line = 0;
};

// Finds the last exception before line `end` that no launcher raised.
std::optional<Exception> find_exception(const std::vector<std::string_view>& lines, size_t end) {
  for (size_t head = end; head-- > 0;) {
    if (!lines[head].starts_with(kTracebackHead)) continue;
    bool in_frame = false;
    for (size_t i = head + 1; i < end && !lines[i].starts_with(kTracebackHead); ++i) {
      if (lines[i].starts_with("File \"")) {
        in_frame = true;
        continue;
      }
      if (!in_frame || !is_exception(lines[i])) continue;
      const bool of_launcher = std::ranges::any_of(
          kLauncherErrors, [&](std::string_view name) { return lines[i].starts_with(name); });
      if (of_launcher) break;
      return Exception{head, i};
    }
  }
  return {};
}

std::string joined(const std::vector<std::string_view>& lines, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : "\n") + std::string(lines[i]);
  return text;
}

// Returns the last line that the script printed before `end`, followed by its command and the lines
// before.
std::string last_message(const std::vector<std::string_view>& lines, size_t end) {
  size_t begin = end;
  while (begin > 0 && !lines[begin - 1].starts_with(kCommandHead)) --begin;
  std::vector<std::string_view> kept;
  for (size_t i = begin > 0 ? begin - 1 : 0; i < end; ++i) {
    if (is_of_torchrun(lines[i]) && lines[i].find(kTorchReport) != lines[i].npos) break;
    if (!lines[i].empty() && !traced(lines[i]) && !is_of_torchrun(lines[i]))
      kept.push_back(lines[i]);
  }
  if (kept.empty()) return "";
  const std::string text = shorten(kept.back(), kExceptionBytesMax);
  const std::string before = joined(kept, 0, kept.size() - 1);
  return before.empty() ? text : text + "\n" + contract::last_lines(before, kFramesBytesMax);
}

}  // namespace

bool is_driver_failure(std::string_view failure) {
  failure = trim(failure);
  if (failure.starts_with(kGenericFailure)) return true;
  return failure.starts_with(kTracebackHead) && failure.find(kDriverDirectory) != failure.npos &&
         failure.find(std::string("\n") + std::string(kLauncherErrors[0])) != failure.npos;
}

std::string script_failure(std::string_view printed) {
  std::vector<std::string_view> lines;
  for (const auto line : split(printed, '\n')) lines.push_back(bare(line));
  const auto driver = std::ranges::find_if(lines, ends_script);
  const auto end = static_cast<size_t>(driver - lines.begin());
  if (const auto found = find_exception(lines, end)) {
    std::string text = shorten(lines[found->line], kExceptionBytesMax);
    const std::string traceback = joined(lines, found->traceback, found->line + 1);
    const bool of_mpi = traceback.find(kMpiDriver) != traceback.npos;
    for (const DriverHint& each : kMpiHints)
      if (of_mpi && text.find(each.exception) != text.npos)
        text.append(" (").append(each.hint).append(")");
    return text + "\n" + contract::last_lines(traceback, kFramesBytesMax);
  }
  return driver == lines.end() ? "" : last_message(lines, end);
}

}  // namespace trainyard::agent

#include "os/process_usage.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::os {
namespace {

constexpr size_t kStatBytesMax = 64 << 10;
constexpr size_t kMachineStatBytesMax = 4 << 20;  // one line for each processor and interrupt

// Fields of /proc/PID/stat (proc(5)), counted from the first field after the name.
enum Field : size_t {
  kUserTicks = 11,
  kSystemTicks = 12,
  kThreads = 17,
  kStart = 19,
  kSize,
  kPages
};

uint64_t count_open_files() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (!directory) return 0;
  uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.';
  ::closedir(directory);
  return count - 1;  // the directory itself
}

// Returns the time when the machine was started, since 1970.
Result<double> boot_seconds() {
  const std::string text = TRY(read_file("/proc/stat", kMachineStatBytesMax));
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with("btime ")) return parse_double(trim(line.substr(6)));
  return corrupt("/proc/stat has no btime");
}

}  // namespace

Result<ProcessUsage> parse_process_stat(std::string_view text, double boot, double ticks_per_second,
                                        uint64_t page_bytes) {
  // The name, in parentheses, may contain anything.
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos) return corrupt("status of a process: " + shorten(text, 100));
  const auto fields = split(trim(text.substr(name_end + 1)), ' ');
  if (fields.size() <= kPages) return corrupt("status of a process: " + shorten(text, 100));
  const auto number = [&](Field field) { return parse_double(fields[field]); };
  ProcessUsage usage;
  usage.cpu_seconds = (TRY(number(kUserTicks)) + TRY(number(kSystemTicks))) / ticks_per_second;
  usage.start_seconds = boot + TRY(number(kStart)) / ticks_per_second;
  usage.threads = uint64_t(TRY(number(kThreads)));
  usage.virtual_bytes = uint64_t(TRY(number(kSize)));
  usage.resident_bytes = uint64_t(TRY(number(kPages))) * page_bytes;
  return usage;
}

Result<ProcessUsage> usage_of_this_process() {
  ProcessUsage usage =
      TRY(parse_process_stat(TRY(read_file("/proc/self/stat", kStatBytesMax)), TRY(boot_seconds()),
                             double(::sysconf(_SC_CLK_TCK)), uint64_t(::sysconf(_SC_PAGESIZE))));
  usage.open_files = count_open_files();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.open_files_max = limit.rlim_cur;
  return usage;
}

}  // namespace trainyard::os

#include "containers/process_usage.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::containers {
namespace {

constexpr size_t kNameBytesMax = 15;         // the kernel's limit
constexpr size_t kProcessesReadMax = 4'096;  // as many as a container has by default

// Indexes in the fields of /proc/PID/stat (proc(5)), counted from "state", the first after the
// name: utime, stime, cutime, cstime; rss.
constexpr size_t kTimes[] = {12, 13, 14, 15}, kPages = 22;

struct Stat {
  std::string name;
  int64_t ticks = 0;  // CPU time, including that of its children that have ended
  int64_t pages = 0;  // resident pages
};

std::optional<Stat> stat_of(const std::string& process) {
  const auto text = os::read_file("/proc/" + process + "/stat", 4096);
  if (!text) return {};
  // "PID (name) S PPID ..": the name may contain any character, also ')'.
  const size_t begin = text->find('('), end = text->rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  const auto members = split(std::string_view(*text).substr(end + 1), ' ');
  if (members.size() <= kPages) return {};
  Stat stat{text->substr(begin + 1, end - begin - 1)};
  for (const size_t index : kTimes)
    if (const auto number = parse_int(members[index])) stat.ticks += *number;
  if (const auto number = parse_int(members[kPages])) stat.pages = *number;
  return stat;
}

long page_bytes() {
  static const long bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

}  // namespace

// The other processes of this PID namespace are the container, its runtime, and a few helper
// programs.
Result<ContainerUsage> usage_of_other_processes() {
  static const long ticks = std::max(1l, ::sysconf(_SC_CLK_TCK));
  ContainerUsage usage;
  for (const auto& name : TRY(os::list_directory("/proc"))) {
    if (name.find_first_not_of("0123456789") != std::string::npos ||
        name == std::to_string(::getpid()))
      continue;
    const auto stat = stat_of(name);
    if (!stat) continue;
    usage.cpu += std::chrono::nanoseconds(stat->ticks * (1'000'000'000 / ticks));
    usage.memory_bytes += stat->pages * page_bytes();
  }
  return usage;
}

std::vector<ProcessMemory> largest(const std::vector<int>& processes, size_t count_max) {
  std::vector<ProcessMemory> all;
  for (const int process : processes) {
    if (all.size() >= kProcessesReadMax) break;
    const auto stat = stat_of(std::to_string(process));
    if (!stat || stat->pages <= 0) continue;
    ProcessMemory one{stat->name.substr(0, kNameBytesMax), stat->pages * page_bytes()};
    for (char& c : one.name)
      if (c < ' ' || c > '~') c = '?';
    all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, std::greater(), &ProcessMemory::bytes);
  if (all.size() > count_max) all.resize(count_max);
  return all;
}

}  // namespace trainyard::containers

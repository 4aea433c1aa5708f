#include "containers/process_usage.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

// The other processes of our PID namespace are the container, its runtime, and the few helper programs that we start.
Result<ContainerUsage> usage_of_own_processes() {
  static const long ticks = std::max(1l, ::sysconf(_SC_CLK_TCK)), page = ::sysconf(_SC_PAGESIZE);
  ContainerUsage usage;
  for (const auto& name : TRY(os::list_directory("/proc"))) {
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(::getpid()))
      continue;
    const auto text = os::read_file("/proc/" + name + "/stat", 4096);
    const size_t end = text ? text->rfind(')') : std::string::npos;
    if (end == std::string::npos) continue;
    const auto members = split(std::string_view(*text).substr(end + 1), ' ');
    // Of proc(5)'s list, from "state", which is the third: utime, stime, cutime, cstime; rss.
    constexpr size_t kTimes[] = {12, 13, 14, 15}, kPages = 22;
    if (members.size() <= kPages) continue;
    for (const size_t index : kTimes)
      if (const auto number = parse_int(members[index]))
        usage.cpu += std::chrono::nanoseconds(*number * (1'000'000'000 / ticks));
    if (const auto pages = parse_int(members[kPages])) usage.memory_bytes += *pages * page;
  }
  return usage;
}

}  // namespace trainyard::containers

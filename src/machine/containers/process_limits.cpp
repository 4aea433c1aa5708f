#include "containers/process_limits.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace trainyard::containers {

std::optional<int> resource_of(std::string_view name) {
  static constexpr std::pair<std::string_view, int> kResources[] = {
      {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
      {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS},
      {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
      {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},
      {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
      {"stack", RLIMIT_STACK}};
  for (const auto& [each, number] : kResources)
    if (each == name) return number;
  return {};
}

void raise_limits(std::vector<ProcessLimit>& limits, std::vector<std::string>& withheld) {
  for (auto& limit : limits) {
    const auto resource = resource_of(limit.name);
    rlimit ours = {};
    if (!resource || ::getrlimit(__rlimit_resource_t(*resource), &ours) != 0 ||
        ours.rlim_max >= limit.hard)
      continue;
    const rlimit raised = {ours.rlim_cur, limit.hard};
    if (::setrlimit(__rlimit_resource_t(*resource), &raised) == 0) continue;
    withheld.push_back("the limit " + limit.name + " is " + std::to_string(ours.rlim_max) +
                       ", not " + std::to_string(limit.hard) +
                       ": this machine does not let the server raise it");
    limit.hard = ours.rlim_max;
    limit.soft = std::min(limit.soft, limit.hard);
  }
}

// Before Linux 5.14 the processes of a user in all namespaces count. A limit above that of this
// process cannot be set.
bool may_limit_processes_by_user(int64_t pids_max) {
  utsname name;
  int major = 0, minor = 0;
  if (pids_max <= 0 || ::uname(&name) != 0 ||
      std::sscanf(name.release, "%d.%d", &major, &minor) != 2)
    return false;
  rlimit ours = {};
  return (major > 5 || (major == 5 && minor >= 14)) && ::getrlimit(RLIMIT_NPROC, &ours) == 0 &&
         (ours.rlim_max == RLIM_INFINITY || ours.rlim_max >= rlim_t(pids_max));
}

}  // namespace trainyard::containers

#include "containers/system_call_filter.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "os/files.hpp"

namespace trainyard::containers {
namespace {

constexpr size_t kProfileBytesMax = 1 << 20;  // Debian's has 16 KiB

// the flags of clone() that make a namespace: NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
constexpr uint64_t kNamespaceFlags = 0x7E020000;
constexpr int kEperm = 1, kEnosys = 38;
// Allowed families: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (for names of interfaces). Other
// families lead out of the network namespace (AF_VSOCK leads to the hypervisor) or only enlarge the
// attack surface of the kernel (AF_ALG).
constexpr int kSocketFamilies[] = {1, 2, 10, 16};
constexpr int kAfAlg = 38, kAfVsock = 40;

// Calls that are denied even if the profile allows them.
const std::set<std::string>& denied_names() {
  static const std::set<std::string> names = {
      // mounts, namespaces
      "mount", "umount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsconfig",
      "fsmount", "fspick", "mount_setattr", "unshare", "setns",
      // other processes
      "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
      // the kernel
      "bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "kexec_load", "kexec_file_load",
      "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms",
      "query_module", "io_uring_setup", "io_uring_enter", "io_uring_register",
      // keys
      "keyctl", "add_key", "request_key",
      // the machine
      "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "settimeofday",
      "stime", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex",
      "iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "vhangup", "nfsservctl", "uselib", "ustat",
      "sysfs", "_sysctl", "sethostname", "setdomainname", "move_pages", "migrate_pages",
      // files outside of the mounts
      "open_by_handle_at", "name_to_handle_at", "fanotify_init"};
  return names;
}

// Calls that have their own rules below.
bool has_own_rules(const std::string& name) {
  return name == "clone" || name == "clone3" || name == "socket";
}

Json refused(std::vector<std::string> names, int error_number) {
  return {{"names", std::move(names)}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", error_number}};
}

// Returns a condition on an argument of a call.
Json when(Json rule, unsigned index, uint64_t value, uint64_t value_two, const char* operation) {
  rule["args"] = Json::array(
      {{{"index", index}, {"value", value}, {"valueTwo", value_two}, {"op", operation}}});
  return rule;
}

Json allowed(std::vector<std::string> names) {
  return {{"names", std::move(names)}, {"action", "SCMP_ACT_ALLOW"}};
}

// Returns Go's name of an architecture, which the profile uses.
std::string_view go_architecture(std::string_view architecture) {
  if (architecture == "x86_64") return "amd64";
  if (architecture == "aarch64") return "arm64";
  return architecture;
}

Result<std::vector<std::string>> texts_at(const Json& object, const char* name) {
  std::vector<std::string> texts;
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return texts;
  if (!found->is_array())
    return invalid("invalid system call profile: " + std::string(name) + " must be a list");
  for (const auto& each : *found) {
    if (!each.is_string())
      return invalid("invalid system call profile: " + std::string(name) +
                     " must be a list of strings");
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Returns true if a rule applies on this architecture to a process with these capabilities.
Result<bool> holds(const Json& rule, std::string_view architecture,
                   const std::vector<std::string>& capabilities) {
  const Json none = Json::object();
  const auto member = [&](const char* name) -> const Json& {
    const auto found = rule.find(name);
    return found != rule.end() && found->is_object() ? *found : none;
  };
  const Json &includes = member("includes"), &excludes = member("excludes");
  const auto architectures = TRY(texts_at(includes, "arches"));
  if (!architectures.empty() && !contains(architectures, architecture)) return false;
  if (contains(TRY(texts_at(excludes, "arches")), architecture)) return false;
  for (const auto& each : TRY(texts_at(includes, "caps")))
    if (!contains(capabilities, each)) return false;
  for (const auto& each : TRY(texts_at(excludes, "caps")))
    if (contains(capabilities, each)) return false;
  return true;
}

// Adds the rules of this filter for making processes and sockets.
void add_own_rules(Json& calls) {
  calls.push_back(refused({denied_names().begin(), denied_names().end()}, kEperm));
  calls.push_back(when(allowed({"clone"}), 0, kNamespaceFlags, 0, "SCMP_CMP_MASKED_EQ"));
  // A filter compares for equality under a mask, so each flag needs its own rule.
  for (uint64_t flag = 1; flag <= kNamespaceFlags; flag <<= 1)
    if (kNamespaceFlags & flag)
      calls.push_back(when(refused({"clone"}, kEperm), 0, flag, flag, "SCMP_CMP_MASKED_EQ"));
  // clone3 has its flags in memory, which a filter cannot read. On ENOSYS the C library uses clone.
  calls.push_back(refused({"clone3"}, kEnosys));
  for (const int family : kSocketFamilies)
    calls.push_back(when(allowed({"socket"}), 0, uint64_t(family), 0, "SCMP_CMP_EQ"));
  for (const int family : {kAfVsock, kAfAlg})
    calls.push_back(when(refused({"socket"}, kEperm), 0, uint64_t(family), 0, "SCMP_CMP_EQ"));
}

}  // namespace

Result<Json> make_system_call_filter(const Json& profile, std::string_view architecture,
                                     const std::vector<std::string>& capabilities) {
  const auto action = TRY(string_at(profile, "defaultAction"));
  if (action != "SCMP_ACT_ERRNO" && action != "SCMP_ACT_KILL_PROCESS" && action != "SCMP_ACT_KILL")
    return invalid("invalid system call profile: defaultAction is " + action +
                   ", but it must be an allow list: SCMP_ACT_ERRNO");
  const auto rules = profile.find("syscalls");
  if (rules == profile.end() || !rules->is_array())
    return invalid("invalid system call profile: no syscalls");
  Json architectures = Json::array();
  // Only the native architecture: a call by the table of another one ends the process, so it cannot
  // bypass the filter.
  if (architecture == "x86_64") architectures.push_back("SCMP_ARCH_X86_64");
  if (architecture == "aarch64") architectures.push_back("SCMP_ARCH_AARCH64");
  Json calls = Json::array();
  for (const auto& rule : *rules) {
    if (!rule.is_object()) return invalid("invalid system call profile: a rule is not an object");
    if (!TRY(holds(rule, go_architecture(architecture), capabilities))) continue;
    std::vector<std::string> names = TRY(texts_at(rule, "names"));
    std::erase_if(names, [](const std::string& name) {
      return denied_names().contains(name) || has_own_rules(name);
    });
    if (names.empty()) continue;
    const std::string action = TRY(string_at(rule, "action"));
    Json kept{{"names", names}, {"action", action}};
    if (const auto found = rule.find("args");
        found != rule.end() && found->is_array() && !found->empty())
      kept["args"] = *found;
    if (const auto found = rule.find("errnoRet"); found != rule.end() && found->is_number_integer())
      kept["errnoRet"] = *found;
    calls.push_back(std::move(kept));
  }
  add_own_rules(calls);
  return Json{{"defaultAction", "SCMP_ACT_ERRNO"},
              {"defaultErrnoRet", kEnosys},
              {"architectures", architectures},
              {"syscalls", calls}};
}

Result<Json> system_call_profile() {
  static const Result<Json> profile = []() -> Result<Json> {
    for (const char* path : kProfileFiles) {
      if (!os::exists(path)) continue;
      const std::string text =
          TRY(os::read_file(path, kProfileBytesMax).in("reading the system call profile"));
      return TRY(parse_json(text).in(path));
    }
    return denied(std::string("starting a container: system call profile not found: ") +
                  kProfileFiles[1] + ": install the package golang-github-containers-common");
  }();
  return profile;
}

}  // namespace trainyard::containers

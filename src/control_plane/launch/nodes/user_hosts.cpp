#include "launch/nodes/user_hosts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "containers/rootless_sandbox.hpp"
#include "domain/limits.hpp"
#include "launch/slurm/answers.hpp"
#include "os/accounts.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kProgramName = "/trainyard-slurm-host";
constexpr const char* kSandboxPrefix = "sandbox-";
constexpr const char* kSandboxLock = "/lock";  // containers/rootless_sandbox.hpp
constexpr const char* kSandboxesLock = "sandboxes.lock";
// The longest wait for the sandbox. Making namespaces takes some milliseconds, but on a busy node
// several jobs start at once.
constexpr Duration kSandboxMax = 60s;
// Slurm's own limit ends it before.
constexpr Duration kHostMax = 24h * 366;

Result<void> check_user(const HostOrder& order) {
  if (order.user.empty())
    return invalid("the order has no Unix account: it is for a job of the server's own account");
  if (const uint32_t own = os::own_user_id(); own != order.user_id)
    return denied("the Slurm job runs as user " + std::to_string(own) + ", but it is for " +
                  order.user + " (" + std::to_string(order.user_id) +
                  "): do this node and the server know the same accounts?");
  return {};
}

// Makes a directory that only this user can enter. Its parent may be writable for all users
// (/var/tmp), so another user may have created it, or a link.
Result<void> make_own_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return from_errno("making " + path);
  const os::File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!directory || ::fstat(directory.descriptor(), &status) != 0)
    return from_errno("opening the directory " + path);
  if (status.st_uid != os::own_user_id())
    return denied("the directory " + path + " belongs to user " + std::to_string(status.st_uid) +
                  ", not to the user for whom the job runs: have it removed");
  if ((status.st_mode & 0777) != 0700 && ::fchmod(directory.descriptor(), 0700) != 0)
    return from_errno("closing " + path + " to others");
  return {};
}

// Returns true if a process is in the sandbox. Each process has a shared lock, for which the
// namespace holder waits.
bool is_in_use(const std::string& sandbox) {
  const os::File lock(::open((sandbox + kSandboxLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.descriptor(), LOCK_EX | LOCK_NB) != 0;
}

// Removes the sandboxes of ended steps. Requires: no process is entering one.
void remove_old_sandboxes(const std::string& directory, const std::string& own) {
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(kSandboxPrefix) || path == own ||
        is_in_use(path))
      continue;
    if (const auto removed = os::remove_all(path); !removed)
      log(Level::warning, "launch", "removing the sandbox of a step that has ended",
          {{"why", removed.error().message}});
  }
}

Result<void> enter_sandbox(const HostOrder& order, const NodeFacts& node) {
  const std::string data = order.node_directory + "/" + node.name;
  TRY(make_own_directory(order.node_directory));
  TRY(make_own_directory(data));
  const std::string sandbox = data + "/" + kSandboxPrefix + node.job_number;
  const auto lock = TRY(os::FileLock::take_within(data + "/" + kSandboxesLock, kSandboxMax));
  remove_old_sandboxes(data, sandbox);
  return containers::enter_rootless_sandbox(sandbox);
}

HostEnd run_one(const HostOrder& order, const NodeFacts& node, const std::string& gpus) {
  os::Command command;
  command.arguments = {node.program_directory + kProgramName};
  command.environment = {{"SLURM_STEP_GPUS", gpus}, {"SLURM_JOB_GPUS", ""}};
  command.input = to_text(order);
  command.at_most = kHostMax;
  const auto ended = os::run(command);
  if (!ended) return {order.host, 1, slurm_message(ended.error().message)};
  return {order.host, ended->code, ended->code == 0 ? "" : slurm_message(ended->errors)};
}

// Reports the ends of hosts, one at a time, and keeps the first code that is not 0.
class HostEnds {
 public:
  explicit HostEnds(const std::function<void(const HostEnd&)>& tell) : tell_(tell) {}
  void add(const HostEnd& end) {
    const MutexLock lock(mutex_);
    if (code_ == 0) code_ = end.code;
    tell_(end);
  }
  int code() {
    const MutexLock lock(mutex_);
    return code_;
  }

 private:
  const std::function<void(const HostEnd&)>& tell_;
  Mutex mutex_;
  int code_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

Result<std::vector<HostOrder>> read_host_orders(std::string_view text) {
  std::vector<HostOrder> orders;
  for (const auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    if (orders.size() >= size_t(domain::kGangHostsMax))
      return invalid("more than " + std::to_string(domain::kGangHostsMax) +
                     " orders: a gang has at most as many hosts");
    orders.push_back(TRY(read_host_order(line)));
    const HostOrder &first = orders.front(), &last = orders.back();
    if (last.user != first.user || last.user_id != first.user_id ||
        last.node_directory != first.node_directory)
      return invalid("the orders are for several Unix accounts: '" + first.user + "' and '" +
                     last.user + "'");
  }
  if (orders.empty()) return invalid("the orders are empty");
  return orders;
}

Result<std::vector<std::string>> split_gpus(std::string_view indexes,
                                            const std::vector<HostOrder>& orders) {
  std::vector<std::string> all;
  if (!indexes.empty()) all = TRY(expand_host_list("[" + std::string(indexes) + "]"));
  std::vector<std::string> parts;
  size_t used = 0;
  for (const HostOrder& order : orders) {
    if (order.gpus > int64_t(all.size() - used))
      return invalid("a host needs " + std::to_string(order.gpus) + " GPUs, but only " +
                     std::to_string(all.size() - used) +
                     " are left of those that Slurm has given to the job on this node: '" +
                     shorten(indexes, 80) + "'; check the node's Gres in slurm.conf");
    const auto first = all.begin() + std::ptrdiff_t(used);
    parts.push_back(join_names({first, first + std::ptrdiff_t(order.gpus)}));
    used += size_t(order.gpus);
  }
  return parts;
}

Result<int> run_user_hosts(const std::vector<HostOrder>& orders, const NodeFacts& node,
                           const std::function<void(const HostEnd&)>& tell) {
  if (node.name.empty() || node.name.find('/') != std::string::npos || !parse_int(node.job_number))
    return invalid("SLURMD_NODENAME is '" + node.name + "' and SLURM_JOB_ID '" + node.job_number +
                   "': start this program in a step of Slurm");
  TRY(check_user(orders.front()));
  const auto gpus = TRY(split_gpus(node.gpus, orders));
  TRY(enter_sandbox(orders.front(), node));
  HostEnds ends(tell);
  std::vector<std::thread> hosts;
  for (size_t i = 0; i < orders.size(); ++i)
    hosts.emplace_back([&, i] { ends.add(run_one(orders[i], node, gpus[i])); });
  for (auto& host : hosts) host.join();
  return ends.code();
}

}  // namespace trainyard::launch

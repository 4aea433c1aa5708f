// Tests that slirp4netns is started late, and again after it was killed, in the namespaces of an
// ordinary user. Needs root, to become that user with access to /dev/net/tun.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "base/text.hpp"
#include "containers/rootless_sandbox.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

constexpr uid_t kOrdinaryUser = 61'234;                // not in /etc/passwd
constexpr auto kEndsWithin = std::chrono::minutes(2);  // the machine may be busy
enum Outcome { kPassed, kFailed, kNotPermitted };

bool wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kEndsWithin;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// Returns the children of the namespace holder that are slirp4netns.
std::set<int> slirps(const std::string& directory) {
  std::set<int> found;
  const auto holder = os::read_file(directory + "/keeper");
  const auto names = os::list_directory("/proc");
  if (!holder || !names) return found;
  const std::string parent(split(*holder, ' ').front());
  for (const auto& name : *names) {
    const auto text = os::read_file("/proc/" + name + "/stat", 4096);
    const size_t end = text ? text->rfind(')') : std::string::npos;
    if (end == std::string::npos || text->find("(slirp4netns)") == std::string::npos) continue;
    const auto members = split(std::string_view(*text).substr(end + 2), ' ');
    if (members.size() > 1 && members[0] != "Z" && members[1] == parent)
      found.insert(std::stoi(name));
  }
  return found;
}

bool has_egress_link() {
  const os::File network(::open(network_of_bridges().c_str(), O_RDONLY | O_CLOEXEC));
  return network && ::setns(network.descriptor(), CLONE_NEWNET) == 0 &&
         ::if_nametoindex("tap0") != 0;
}

Outcome kill_slirp_twice(const std::string& directory) {
  if (const auto entered = enter_rootless_sandbox(directory); !entered) return kNotPermitted;
  if (!why_no_egress().empty()) return kNotPermitted;
  std::set<int> gone;
  for (int round = 0; round < 2; ++round) {
    const std::set<int> serving = slirps(directory);
    if (serving.size() != 1 || gone.contains(*serving.begin())) return kFailed;
    gone.insert(*serving.begin());
    if (::kill(*serving.begin(), SIGKILL) != 0) return kFailed;
    const bool again = wait_until([&] {
      const std::set<int> now = slirps(directory);
      return now.size() == 1 && !gone.contains(*now.begin()) && why_no_egress().empty();
    });
    if (!again) return kFailed;
  }
  return has_egress_link() ? kPassed : kFailed;
}

// Enters a sandbox while only root may open the device of the egress, lets root permit it, and
// waits.
Outcome await_device(const std::string& directory, int to_root) {
  if (const auto entered = enter_rootless_sandbox(directory); !entered) return kNotPermitted;
  const auto lacks_device = [] {
    return why_no_egress().find("/dev/net/tun") != std::string::npos;
  };
  if (!lacks_device() || ::write(to_root, "x", 1) != 1) return kFailed;
  if (!wait_until([&] { return !lacks_device(); })) return kFailed;
  if (!why_no_egress().empty()) return kNotPermitted;
  return has_egress_link() ? kPassed : kFailed;
}

// Becomes the ordinary user, in a mount namespace whose /dev/net/tun has the mode `device_mode`.
Outcome as_ordinary_user(const std::string& directory, mode_t device_mode,
                         const std::function<Outcome(const std::string& sandbox)>& work) {
  const std::string device = directory + "/tun";
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mknod(device.c_str(), S_IFCHR | 0600, ::makedev(10, 200)) != 0 ||
      ::chmod(device.c_str(), device_mode) != 0 ||
      ::mount(device.c_str(), "/dev/net/tun", nullptr, MS_BIND, nullptr) != 0 ||
      ::chown(directory.c_str(), kOrdinaryUser, kOrdinaryUser) != 0 ||
      ::setgroups(0, nullptr) != 0 ||
      ::setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0 ||
      ::setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0 ||
      ::prctl(PR_SET_DUMPABLE, 1) != 0)  // otherwise /proc/PID of its children belongs to root
    return kNotPermitted;
  return work(directory + "/sandbox");
}

Outcome outcome_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? Outcome(WEXITSTATUS(status)) : kFailed;
}

TEST(SlirpRestart, StartsTheEgressOnceItIsPossible) {
  if (!is_root() || in_rootless_sandbox() || !os::on_path("slirp4netns"))
    GTEST_SKIP() << "needs root and slirp4netns";
  const os::TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const os::File from_child(ends[0]);
  os::File to_root(ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    ::_exit(as_ordinary_user(directory.path(), 0600, [&](const std::string& sandbox) {
      return await_device(sandbox, to_root.descriptor());
    }));
  to_root.close();
  char byte = 0;
  if (::read(from_child.descriptor(), &byte, 1) == 1) {
    EXPECT_EQ(::chmod((directory.path() + "/tun").c_str(), 0666), 0);
  }
  const Outcome outcome = outcome_of(child);
  if (outcome == kNotPermitted)
    GTEST_SKIP() << "this machine permits no user namespaces with egress";
  EXPECT_EQ(outcome, kPassed);
}

TEST(SlirpRestart, RestartsSlirp4netnsAfterItDied) {
  if (!is_root() || in_rootless_sandbox() || !os::on_path("slirp4netns"))
    GTEST_SKIP() << "needs root and slirp4netns";
  const os::TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(as_ordinary_user(directory.path(), 0666, kill_slirp_twice));
  const Outcome outcome = outcome_of(child);
  if (outcome == kNotPermitted)
    GTEST_SKIP() << "this machine permits no user namespaces with egress";
  EXPECT_EQ(outcome, kPassed);
  const auto log = os::read_file(directory.path() + "/sandbox/holder.log", 64 << 10);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(split(*log, '\n').size(), 3u) << *log;
  EXPECT_NE(log->find("has ended and is started again"), std::string::npos) << *log;
}

}  // namespace
}  // namespace trainyard::containers

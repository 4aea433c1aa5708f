#include "containers/container.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.hpp"
#include "containers/cgroup.hpp"
#include "containers/compiled_filter.hpp"
#include "containers/container_plan.hpp"
#include "containers/rootless_sandbox.hpp"
#include "containers/runtime.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

ContainerSpec a_spec() {
  ContainerSpec spec;
  spec.id = "j1a1-0";
  spec.directory = "/data/attempts/j1a1/0/bundle";
  spec.arguments = {"train"};
  spec.hostname = "algo-1";
  spec.network_namespace = "/run/netns/x";
  return spec;
}

// -- with a kernel --------------------------------------------------------------------------------

class RealContainer : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !os::on_path("crun")) GTEST_SKIP() << "needs root and crun";
    directory_ = temporary_.path();
    spec_ = a_spec();
    spec_.directory = directory_ + "/bundle";
    spec_.network_namespace = "";
    spec_.memory_bytes = 256 << 20;
    spec_.cpus = 1;
    spec_.pids_max = 64;
  }
  void TearDown() override {
    if (directory_.empty()) return;
    if (!unmappable_.empty()) {
      EXPECT_EQ(::umount2(unmappable_.c_str(), MNT_DETACH), 0);
    }
    EXPECT_TRUE(remove_container(spec_.id, spec_.directory));
    EXPECT_TRUE(os::remove_all(directory_));
    EXPECT_FALSE(Cgroup::named(cgroup_name(spec_.id, spec_.directory)).exists());
    const auto mounts = os::read_file("/proc/self/mountinfo");
    ASSERT_TRUE(mounts);
    EXPECT_EQ(mounts->find(directory_), std::string::npos);
  }

  Result<std::unique_ptr<Container>> start(const std::string& script) {
    spec_.arguments = {"sh", "-c", script};
    return start_program();
  }
  Result<std::unique_ptr<Container>> start_program() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("pipe");
    reading_ = os::File(ends[0]);
    return start_container(spec_, ends[1]);
  }
  std::string output() {
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = ::read(reading_.descriptor(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, size_t(got));
    return all;
  }
  // Runs the container to its end.
  ContainerExit run(const std::string& script) {
    auto container = start(script);
    EXPECT_TRUE(container) << container.error().message;
    if (!container) return {};
    text_ = output();
    const auto exit = (*container)->wait(30s);
    EXPECT_TRUE(exit && *exit);
    return exit && *exit ? **exit : ContainerExit{};
  }

  // Makes a directory of a file system that no kernel maps to other ids; it is removed with the
  // test.
  std::string make_unmappable() {
    const std::string path = directory_ + "/unmappable";
    EXPECT_TRUE(os::make_directories(path));
    EXPECT_EQ(::mount("ramfs", path.c_str(), "ramfs", 0, "mode=0777"), 0);
    return unmappable_ = path;
  }

  const os::TemporaryDirectory temporary_;
  std::string directory_;  // its path, where the test runs
  std::string unmappable_;
  ContainerSpec spec_;
  os::File reading_;
  std::string text_;
};

TEST_F(RealContainer, RunsAProgramOfThisMachine) {
  spec_.environment = {{"GREETING", "hello"}};
  EXPECT_EQ(run("echo $GREETING from $(hostname) as $$; exit 3").code, 3);
  EXPECT_EQ(text_, "hello from algo-1 as 1\n");
}

TEST_F(RealContainer, SeesOnlyTheAllowList) {
  EXPECT_EQ(run("ls -d /etc/shadow /etc/ssh /etc/hosts /home/* /root/* /work /var/lib/* /boot "
                "2>/dev/null; ls /usr/bin/env")
                .code,
            0);
  EXPECT_EQ(text_, "/usr/bin/env\n");
}

TEST_F(RealContainer, CannotWriteToTheMachine) {
  run("touch /usr/x /usr/bin/x /etc/passwd /etc/ssl/certs/x /sys/x /proc/sys/kernel/core_pattern; "
      "echo x >/etc/passwd; echo x >/proc/sys/kernel/core_pattern; echo x >/proc/sysrq-trigger; "
      "echo ok >/etc/environment && cat /etc/environment");
  EXPECT_NE(text_.find("ok\n"), std::string::npos) << text_;
  EXPECT_FALSE(os::exists("/usr/x"));
  EXPECT_NE(text_.find("Read-only file system"), std::string::npos) << text_;
}

TEST_F(RealContainer, MountsTheRequestedDirectoriesAndFiles) {
  ASSERT_TRUE(os::make_directories(directory_ + "/ml/input"));
  ASSERT_TRUE(os::write_file(directory_ + "/hosts", "10.0.0.2 algo-1\n"));
  spec_.mounts = {{directory_ + "/ml", "/opt/ml", false},
                  {directory_ + "/hosts", "/etc/hosts"},
                  {"", "/scratch", false, 1 << 20}};
  EXPECT_EQ(
      run("echo model >/opt/ml/model.txt && cat /etc/hosts && ! echo x 2>/dev/null >/etc/hosts && "
          "! head -c 2000000 /dev/zero 2>/dev/null >/scratch/big")
          .code,
      0)
      << text_;
  EXPECT_EQ(text_, "10.0.0.2 algo-1\n");
  const auto model = os::read_file(directory_ + "/ml/model.txt");
  ASSERT_TRUE(model);
  EXPECT_EQ(*model, "model\n");
}

TEST_F(RealContainer, ReportsAMissingProgram) {
  spec_.arguments = {"no-such-program"};
  const auto container = start_program();
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().kind, Kind::not_found) << container.error().message;
  EXPECT_NE(container.error().message.find("no-such-program"), std::string::npos);
}

TEST_F(RealContainer, ForwardsSignals) {
  auto container =
      start("trap 'echo stopping; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(container) << container.error().message;
  char byte;
  ASSERT_EQ(::read(reading_.descriptor(), &byte, 1), 1);
  const auto written =
      os::read_file(spec_.directory + "/pid");  // where a shell finds the container's namespaces
  ASSERT_TRUE(written) << written.error().message;
  const auto process = parse_int(*written);
  ASSERT_TRUE(process);
  EXPECT_EQ(::kill(pid_t(*process), 0), 0);
  ASSERT_TRUE((*container)->signal(SIGTERM));
  const auto exit = (*container)->wait(30s);
  ASSERT_TRUE(exit && *exit);
  EXPECT_EQ((*exit)->code, 7);
}

TEST_F(RealContainer, EndsWithItsFirstProcessAndAllOthersAreKilled) {
  auto container = start("sleep 1000 & sleep 1000 & echo ready; wait");
  ASSERT_TRUE(container) << container.error().message;
  char byte;
  ASSERT_EQ(::read(reading_.descriptor(), &byte, 1), 1);
  const auto still = (*container)->wait(0ms);
  ASSERT_TRUE(still);
  EXPECT_FALSE(*still);
  (*container)->kill_all();
  const auto exit = (*container)->wait(30s);
  ASSERT_TRUE(exit && *exit);
  EXPECT_EQ((*exit)->code, 137);
  EXPECT_FALSE((*exit)->out_of_memory);
  EXPECT_TRUE(Cgroup::named(cgroup_name(spec_.id, spec_.directory)).processes().empty());
}

TEST_F(RealContainer, ReportsThatMemoryRanOut) {
  spec_.memory_bytes = 32 << 20;
  const auto exit = run("head -c 200000000 /dev/zero | tail");
  EXPECT_TRUE(exit.out_of_memory);
}

TEST_F(RealContainer, LimitsProcesses) {
  run("i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done; echo end");
  EXPECT_NE(text_.find("ork"), std::string::npos) << text_;  // "Cannot fork"
}

TEST_F(RealContainer, LimitsCpusOnceItRuns) {
  spec_.cpus = 0.25;
  auto container = start("sleep 1000");
  ASSERT_TRUE(container) << container.error().message;
  const auto* hierarchy = cgroup_layout().with("cpu");
  ASSERT_TRUE(hierarchy);
  const std::string group =
      hierarchy->path + "/trainyard/" + cgroup_name(spec_.id, spec_.directory);
  const auto limit = os::read_file(group + (hierarchy->unified ? "/cpu.max" : "/cpu.cfs_quota_us"));
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_TRUE(limit->starts_with("25000")) << *limit;
  const auto weight = os::read_file(group + (hierarchy->unified ? "/cpu.weight" : "/cpu.shares"));
  ASSERT_TRUE(weight);
  EXPECT_EQ(*weight, hierarchy->unified ? "25\n" : "256\n");
}

TEST_F(RealContainer, CountsItsUsage) {
  auto container = start("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; sleep 100");
  ASSERT_TRUE(container) << container.error().message;
  char byte;
  ASSERT_EQ(::read(reading_.descriptor(), &byte, 1), 1);
  const auto usage = (*container)->usage();
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_GT(usage->cpu.count(), 0);
  EXPECT_GT(usage->memory_bytes, 0);
}

TEST_F(RealContainer, PutsAWritableLayerOverAnImage) {
  const std::string image = directory_ + "/image";
  ASSERT_TRUE(os::make_directories(image + "/bin"));
  ASSERT_TRUE(os::run_or_fail({{"cp", "/bin/busybox", image + "/bin/sh"}}));
  spec_.image_root = image;
  spec_.mounts = {{"/etc/hostname", "/etc/hosts"}};
  EXPECT_EQ(run("echo mine >/new; echo $(ls /) ; read line </new; echo $line").code, 0);
  EXPECT_NE(text_.find("mine\n"), std::string::npos) << text_;
  EXPECT_FALSE(os::exists(image + "/new"));
  EXPECT_FALSE(os::exists(image + "/etc"));
}

TEST_F(RealContainer, GivesRootTheRightsThatPackagesExpect) {
  ASSERT_TRUE(os::make_directories(directory_ + "/ml"));
  spec_.mounts = {{directory_ + "/ml", "/opt/ml", false}};
  EXPECT_EQ(
      run("cd /opt/ml && echo x >file && chown 1000:1001 file && stat -c %u:%g file && "
          "setpriv --reuid=1000 --regid=1001 --clear-groups sh -c 'id -u; echo y >>file; cat' && "
          "chroot / true && echo A=1 >>/etc/environment && kill -0 $$ && grep -E "
          "'^(Cap(Prm|Bnd)|NoNewPrivs|Seccomp):' "
          "/proc/self/status")
          .code,
      0)
      << text_;
  EXPECT_EQ(text_,
            "1000:1001\n1000\nCapPrm:\t00000000a00405fb\nCapBnd:\t00000000a00405fb\nNoNewPrivs:"
            "\t1\nSeccomp:\t2\n");
  // On the machine it is the same user, so uploads can read the files without changing their owner.
  struct stat status;
  ASSERT_EQ(::stat((directory_ + "/ml/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1000u);
}

TEST_F(RealContainer, HasItsOwnIds) {
  auto container = start("cat /proc/self/uid_map; sleep 1000");
  ASSERT_TRUE(container) << container.error().message;
  char text[128] = {};
  ASSERT_GT(::read(reading_.descriptor(), text, sizeof text - 1), 0);
  const auto other = std::move(spec_);
  spec_ = other;
  spec_.id = "j1a1-1";
  spec_.directory = directory_ + "/other";
  EXPECT_EQ(run("cat /proc/self/uid_map").code, 0);
  EXPECT_NE(text_, text);
  EXPECT_TRUE(remove_container(spec_.id, spec_.directory));
  spec_ = other;
}

TEST_F(RealContainer, SharesAnImageWithoutChangingIt) {
  const std::string image = directory_ + "/image";
  ASSERT_TRUE(os::make_directories(image + "/bin"));
  ASSERT_TRUE(os::make_directories(image + "/home/user"));
  ASSERT_TRUE(os::run_or_fail({{"cp", "/bin/busybox", image + "/bin/sh"}}));
  ASSERT_TRUE(os::run_or_fail({{"cp", "/bin/busybox", image + "/bin/busybox"}}));
  ASSERT_EQ(::chown((image + "/home/user").c_str(), 1000, 1000), 0);
  spec_.image_root = image;
  EXPECT_EQ(
      run("busybox stat -c %u:%g / /bin/sh /home/user; busybox chown 7:7 /bin/busybox /home/user; "
          "busybox stat -c %u:%g /home/user")
          .code,
      0);
  EXPECT_EQ(text_, "0:0\n0:0\n1000:1000\n7:7\n");
  spec_.user_id = spec_.group_id = 1000;
  EXPECT_EQ(run("busybox id -u; echo mine >/home/user/file && busybox stat -c %u /home/user/file; "
                "! busybox chown 7 /home/user/file 2>/dev/null")
                .code,
            0);
  EXPECT_EQ(text_, "1000\n1000\n");
  struct stat status;
  ASSERT_EQ(::stat((image + "/home/user").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1000u);
  EXPECT_FALSE(os::exists(image + "/home/user/file"));
}

TEST_F(RealContainer, FailsIfNoUserNamespaceIsPermitted) {
  spec_.mounts = {{make_unmappable(), "/data", false}};
  const auto container = start("true");
  ASSERT_FALSE(container) << "it runs as root of this machine";
  EXPECT_EQ(container.error().kind, Kind::denied) << container.error().message;
  for (const char* part : {"unmappable", "user namespace", "isolation = \"best-effort\""})
    EXPECT_NE(container.error().message.find(part), std::string::npos) << container.error().message;
}

TEST_F(RealContainer, ReportsThatItRunsWithoutAUserNamespaceAtBestEffort) {
  spec_.best_effort_isolation = true;
  spec_.mounts = {{make_unmappable(), "/data", false}};
  auto container = start("touch /data/file; cat /proc/self/uid_map; grep CapEff /proc/self/status");
  ASSERT_TRUE(container) << container.error().message;
  const std::string said = output();
  EXPECT_NE(said.find("4294967295"), std::string::npos) << "the machine's own ids: " << said;
  EXPECT_NE(said.find("CapEff:\t0000000000000000"), std::string::npos) << said;
  ASSERT_EQ((*container)->withheld().size(), 1u);
  EXPECT_NE((*container)->withheld()[0].find("no user namespace"), std::string::npos);
  EXPECT_TRUE((*container)->wait(30s));
}

TEST_F(RealContainer, ProgramsCannotProvokeTheLossOfTheUserNamespace) {
  // The log of the runtime contains "Permission denied" for a program that only root of this
  // machine may run.
  const std::string folder = make_unmappable();
  ASSERT_TRUE(
      os::write_file(folder + "/program", "#!/bin/sh\necho ran as root of the machine\n", 0700));
  spec_.mounts = {{folder, "/data", true}};
  spec_.arguments = {"/data/program"};
  for (const bool best_effort : {false, true}) {
    spec_.best_effort_isolation = best_effort;
    const auto container = start_program();
    EXPECT_FALSE(container) << output();
  }
}

TEST_F(RealContainer, SharesADirectoryAsOneUserAndNeverAsRoot) {
  const std::string shared = directory_ + "/shared";
  ASSERT_TRUE(os::make_directories(shared, 0755));
  ASSERT_EQ(::chown(shared.c_str(), 1234, 1235), 0);
  for (const auto& [name, owner] : {std::pair{"mine", 1234u}, {"roots", 0u}, {"others", 1300u}}) {
    const std::string path = shared + "/" + name;
    ASSERT_TRUE(os::write_file(path, std::string(name) + "\n", 0600));
    ASSERT_EQ(::chown(path.c_str(), owner, owner), 0);
  }
  spec_.mounts = {{shared, "/shared", false, 0, PosixIdentity{1234, 1235}}};
  for (const uint32_t user : {0u, 1000u}) {
    spec_.user_id = spec_.group_id = user;
    EXPECT_EQ(run("cd /shared; cat mine; cat roots others 2>&1 | grep -c 'Permission denied'; "
                  "echo new >made.$(id -u) && stat -c %u:%g mine made.$(id -u) roots; "
                  "chmod 0666 roots 2>/dev/null || echo no; chown 7:7 mine 2>/dev/null || echo no")
                  .code,
              0);
    const std::string own = std::to_string(user);
    EXPECT_EQ(text_, "mine\n2\n" + own + ":65534\n" + own + ":" + own + "\n65534:65534\nno\nno\n");
    struct stat status;
    ASSERT_EQ(::stat((shared + "/made." + own).c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 1234u);
    EXPECT_EQ(status.st_gid, 1235u);
  }
  spec_.mounts[0].identity = PosixIdentity{0, 0};
  EXPECT_FALSE(start("true")) << "as root";
}

TEST_F(RealContainer, GivesDevicesByName) {
  spec_.devices = {"/dev/full"};
  EXPECT_EQ(run("head -c 3 /dev/full | od -An -tx1; ls /dev").code, 0);
  EXPECT_NE(text_.find("00 00 00"), std::string::npos) << text_;
  EXPECT_EQ(text_.find("vda"), std::string::npos) << text_;
}

TEST_F(RealContainer, AcceptsOnlyWholeDevices) {
  const std::string name = "/dev/trainyard-test-" + std::to_string(::getpid());
  ASSERT_EQ(::symlink("/etc/shadow", (name + "-link").c_str()), 0);
  ASSERT_EQ(::mknod((name + "-disk").c_str(), S_IFBLK | 0600, makedev(7, 250)), 0);
  ASSERT_TRUE(os::write_file(name + "-file", "not a device"));
  for (const auto& device :
       {name + "-link", name + "-disk", name + "-file", std::string("/dev/kmsg")}) {
    spec_.devices = {device};
    const auto container = start("true");
    EXPECT_FALSE(container) << device;
    if (!container) {
      const bool is_device = !device.ends_with("-file") && !device.ends_with("-link");
      EXPECT_EQ(container.error().kind, is_device ? Kind::denied : Kind::invalid)
          << container.error().message;
    }
  }
  for (const char* end : {"-link", "-disk", "-file"}) EXPECT_EQ(::unlink((name + end).c_str()), 0);
}

TEST_F(RealContainer, IsSweptWhenItsStarterIsKilled) {
  const pid_t starter = ::fork();
  if (starter == 0) {
    auto container = start("sleep 1000 & sleep 1000");
    ::kill(::getpid(), container ? SIGKILL : SIGTERM);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(starter, &status, 0), starter);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const Cgroup cgroup = Cgroup::named(cgroup_name(spec_.id, spec_.directory));
  EXPECT_FALSE(cgroup.processes().empty());
  // Another test may have swept it already.
  ASSERT_TRUE(sweep_containers());
  EXPECT_TRUE(cgroup.processes().empty());
  EXPECT_FALSE(cgroup.exists());
  ASSERT_TRUE(remove_container(spec_.id, spec_.directory));
  EXPECT_FALSE(os::exists(spec_.directory));
}

TEST_F(RealContainer, IsNotSweptWhileItsStarterRuns) {
  auto container = start("sleep 1000");
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE(sweep_containers());
  EXPECT_FALSE(Cgroup::named(cgroup_name(spec_.id, spec_.directory)).processes().empty());
  ASSERT_TRUE(remove_containers_in(directory_ + "/elsewhere"));
  EXPECT_FALSE(Cgroup::named(cgroup_name(spec_.id, spec_.directory)).processes().empty());
  ASSERT_TRUE(remove_containers_in(directory_));
  EXPECT_FALSE(Cgroup::named(cgroup_name(spec_.id, spec_.directory)).exists());
}

// A program that tries to escape as root of the container, with every number of the system call
// table.
constexpr const char* kHostile = R"(
import ctypes, errno, glob, os, platform, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, reach):
    try:
        got = reach()
    except (OSError, ValueError) as fault:
        print(name, 'refused', errno.errorcode.get(getattr(fault, 'errno', 0), fault), flush=True)
        return
    print(name, 'REACHED' if got else 'refused', got or '', flush=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), '')
    return 'returned ' + str(result)
buffer = ctypes.create_string_buffer(256)
if platform.machine() == 'x86_64':
    attempt('mount', lambda: call(165, b'none', b'/tmp', b'tmpfs', 0, None))
    attempt('remount', lambda: call(165, None, b'/usr', None, 32 | 4096, None))
    attempt('umount', lambda: call(166, b'/proc', 2))
    attempt('fsopen', lambda: call(430, b'tmpfs', 0))
    attempt('open_tree', lambda: call(428, -100, b'/usr', 1))
    attempt('pivot_root', lambda: call(155, b'/tmp', b'/tmp'))
    attempt('ptrace', lambda: call(101, 0, 0, 0, 0))
    attempt('process_vm_readv', lambda: call(310, os.getpid(), None, 0, None, 0, 0))
    attempt('unshare-user', lambda: call(272, 0x10000000))
    attempt('unshare-mount', lambda: call(272, 0x00020000))
    attempt('setns', lambda: call(308, os.open('/proc/self/ns/uts', os.O_RDONLY), 0))
    attempt('clone-user', lambda: call(56, 0x10000000 | 17, None, None, None, None))
    attempt('clone3', lambda: call(435, buffer, 64))
    attempt('keyctl', lambda: call(250, 0, -3, 0))
    attempt('add_key', lambda: call(248, b'user', b'x', b'y', 1, -3))
    attempt('io_uring_setup', lambda: call(425, 1, ctypes.create_string_buffer(256)))
    attempt('personality', lambda: call(135, 0x0040000))
    attempt('a call of a later kernel', lambda: call(451, 0, (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 5)(), 0))
    attempt('bpf', lambda: call(321, 0, buffer, 64))
    attempt('perf_event_open', lambda: call(298, buffer, 0, -1, -1, 0))
    attempt('userfaultfd', lambda: call(323, 1))
    attempt('init_module', lambda: call(175, buffer, 16, b''))
    attempt('kexec_load', lambda: call(246, 0, 0, None, 0))
    attempt('reboot', lambda: call(169, 0xfee1dead, 672274793, 0, None))
    attempt('swapon', lambda: call(167, b'/tmp/x', 0))
    attempt('syslog', lambda: call(103, 3, buffer, 256))
    attempt('settimeofday', lambda: call(164, None, buffer))
    attempt('open_by_handle_at', lambda: call(304, -100, buffer, 0))
    attempt('sethostname', lambda: call(170, b'x', 1))
    attempt('iopl', lambda: call(172, 3))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM) and 'socket')
attempt('alg', lambda: socket.socket(38, socket.SOCK_SEQPACKET) and 'socket')
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and 'socket')
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3) and 'socket')
attempt('mknod', lambda: os.mknod('/tmp/disk', 0o60660, os.makedev(254, 0)) or 'made')
attempt('mknod-null', lambda: os.mknod('/tmp/null', 0o20666, os.makedev(1, 3)) or 'made')
attempt('root-of-machine', lambda: open('/proc/self/uid_map').read().split()[1] == '0')
attempt('group-of-machine', lambda: open('/proc/self/gid_map').read().split()[1] == '0')
for path in ('/dev/null', '/dev/zero', '/usr', '/usr/bin/env', '/etc/passwd', '/proc', '/sys'):
    attempt('chmod ' + path, lambda: os.chmod(path, 0o600) or 'changed')
    attempt('chown ' + path, lambda: os.chown(path, 0, 0) or 'changed')
attempt('map', lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1'))
attempt('score', lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'))
attempt('files', lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 22, 1 << 22)) or 'raised')
attempt('round-robin', lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)) or 'scheduled')
attempt('setuid-file', lambda: [open('/opt/ml/x', 'w'), os.chmod('/opt/ml/x', 0o4755)] and os.statvfs('/opt/ml').f_flag & os.ST_NOSUID == 0)
def leave_chroot():
    outside = os.open('/', os.O_RDONLY)
    os.mkdir('/tmp/jail')
    os.chroot('/tmp/jail')
    os.fchdir(outside)
    for _ in range(20):
        os.chdir('..')
    seen = [name for name in ('etc/shadow', 'work', 'var/lib/dpkg', 'boot') if os.path.exists(name)]
    os.chroot('.')
    return seen
attempt('chroot', leave_chroot)
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/vm/drop_caches', '/proc/sysrq-trigger',
             '/proc/irq/default_smp_affinity', '/sys/kernel/uevent_helper', '/sys/power/state', '/usr/bin/env', '/etc/passwd'):
    attempt('write ' + path, lambda: os.open(path, os.O_WRONLY) and 'opened')
for path in ('/proc/kcore', '/proc/kmsg', '/dev/mem', '/dev/vda', '/dev/kmsg', '/etc/shadow', '/proc/1/root/work', '/var/lib/dpkg'):
    attempt('read ' + path, lambda: os.open(path, os.O_RDONLY) and os.read(os.open(path, os.O_RDONLY), 1))
attempt('cgroup', lambda: [os.mkdir(path + '/owned') or path for path in glob.glob('/sys/fs/cgroup/*')])
attempt('processes', lambda: [one for one in os.listdir('/proc') if one.isdigit() and int(one) not in (1, os.getpid())])
attempt('sysv', lambda: len(open('/proc/sysvipc/shm').readlines()) > 1)
attempt('shared memory', lambda: os.listdir('/dev/shm'))
attempt('interfaces', lambda: [name for _, name in socket.if_nameindex() if name != 'lo'
                               and not name.startswith(('tunl', 'sit', 'gre', 'erspan', 'ip', 'ifb'))])
attempt('nice', lambda: os.nice(-5) < 0 and 'nice')
print('attempts over', flush=True)
)";

TEST_F(RealContainer, ConfinesAHostileProgram) {
  if (!os::exists("/usr/bin/python3")) GTEST_SKIP() << "needs python3";
  ASSERT_TRUE(os::make_directories(directory_ + "/ml"));
  spec_.mounts = {{directory_ + "/ml", "/opt/ml", false}};
  spec_.arguments = {"/usr/bin/python3", "-c", kHostile};
  // The second run uses the cached filter of the first.
  for (int i = 0; i < 2; i++) {
    auto container = start_program();
    ASSERT_TRUE(container) << container.error().message;
    const std::string said = output();
    EXPECT_NE(said.find("attempts over"), std::string::npos) << said;
    EXPECT_EQ(said.find("REACHED"), std::string::npos) << said;
  }
}

TEST_F(RealContainer, HasTheFilterThatTheRuntimeCompiles) {
  struct Started {
    std::string config, filter, status;
  };
  const auto start_one = [&]() -> Started {
    auto container = start("grep Seccomp: /proc/self/status; sleep 1000");
    EXPECT_TRUE(container) << container.error().message;
    char status[64] = {};
    EXPECT_GT(::read(reading_.descriptor(), status, sizeof status - 1), 0);
    const std::string state = runtime_root() + "/" + cgroup_name(spec_.id, spec_.directory);
    const auto config = os::read_file(spec_.directory + "/" + kConfigFile),
               filter = os::read_file(state + "/" + kRuntimeFilter);
    EXPECT_TRUE(config && filter);
    return config && filter ? Started{*config, *filter, status} : Started();
  };
  ASSERT_TRUE(os::remove_all(run_directory() + "/filters"));
  const Started first = start_one(), second = start_one();
  EXPECT_EQ(first.config.find(kFilterAnnotation), std::string::npos);
  EXPECT_NE(second.config.find(kFilterAnnotation), std::string::npos);
  EXPECT_GT(first.filter.size(), 1000U);
  EXPECT_EQ(first.filter, second.filter);
  for (const auto& status : {first.status, second.status}) EXPECT_EQ(status, "Seccomp:\t2\n");
}

}  // namespace
}  // namespace trainyard::containers

#include "containers/id_range.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/text.hpp"

namespace trainyard::containers {
namespace {

constexpr const char* kClaims = "/run/trainyard/ids";

std::string claim_path(uint32_t number) {
  return std::string(kClaims) + "/" + std::to_string(number);
}

Result<void> write_map(pid_t process, const char* file, const IdMap& range) {
  const std::string path = "/proc/" + std::to_string(process) + "/" + file;
  const std::string text = std::to_string(range.inside) + " " + std::to_string(range.outside) +
                           " " + std::to_string(range.count);
  const os::File map(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  // The kernel accepts a map only as a whole, in one write.
  if (!map || ::write(map.descriptor(), text.data(), text.size()) != ssize_t(text.size()))
    return from_errno("mapping ids of a user namespace");
  return ok();
}

// Runs as the child, in its namespace, and waits until the parent closes its end. It shares the
// parent's memory, including thread-local memory, so it must not call functions that write there.
int hold_namespace(void* ends) {
  const auto* const stay = static_cast<const int*>(ends);
  // This process's copy of the writing end must not keep the pipe open.
  (void)::syscall(SYS_close, stay[1]);
  char byte;
  (void)::syscall(SYS_read, stay[0], &byte, 1);
  return 0;
}

// enough for this function and the frames of the C library
constexpr size_t kHolderStackBytes = 32 << 10;

}  // namespace

OwnIds parse_own_ids(std::string_view uid_map) {
  OwnIds own;
  uint64_t next = 0;
  for (const auto line : split(uid_map, '\n')) {
    std::vector<int64_t> numbers;
    for (const auto word : split(line, ' '))
      if (const auto number = parse_int(trim(word))) numbers.push_back(*number);
    if (numbers.size() != 3 || numbers[0] < 0 || uint64_t(numbers[0]) != next) continue;
    if (numbers[0] == 0 && numbers[1] == 0 && numbers[2] == 0xffffffff) own.whole_machine = true;
    const uint64_t remaining = kIdsOfRange - std::min<uint64_t>(next, kIdsOfRange);
    if (remaining > 0)
      own.pieces.push_back(uint32_t(std::min<uint64_t>(remaining, uint64_t(numbers[2]))));
    next += uint64_t(numbers[2]);
  }
  own.count = uint32_t(std::min<uint64_t>(next, kIdsOfRange));
  return own;
}

Result<IdRange> claim_id_range(const std::string& owner, bool (*alive)(const std::string& owner)) {
  const auto read_own = [](const char* map) {
    const auto text = os::read_file(map, 64 << 10);
    return text ? parse_own_ids(*text) : OwnIds();
  };
  static const OwnIds own = read_own("/proc/self/uid_map"),
                      own_groups = read_own("/proc/self/gid_map");
  if (!own.whole_machine)
    return IdRange{0, std::max<uint32_t>(std::min(own.count, own_groups.count), 1), own.pieces,
                   own_groups.pieces};
  TRY(os::make_directories(kClaims, 0755));
  const auto start = uint32_t(std::hash<std::string>()(owner) % kRangesMax);
  for (uint32_t i = 0; i < kRangesMax; i++) {
    const uint32_t number = (start + i) % kRangesMax;
    IdRange range;
    range.first = kFirstRange + number * kIdsOfRange;
    const std::string path = claim_path(number);
    // Tries twice: the second time after removing a dead claim.
    for (int attempt = 0; attempt < 2; attempt++) {
      const os::File claim(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (claim) {
        if (::write(claim.descriptor(), owner.data(), owner.size()) != ssize_t(owner.size()))
          return from_errno("claiming ids at " + path);
        return range;
      }
      if (errno != EEXIST) return from_errno("claiming ids at " + path);
      const auto holder = os::read_file(path, 4096);
      if (holder && *holder == owner) return range;
      // An empty claim is being written now, or its claimer died meanwhile: it is not removed.
      if (!holder || holder->empty() || alive(*holder)) break;
      ::unlink(path.c_str());
    }
  }
  return exhausted("claiming ids for a container: all " + std::to_string(kRangesMax) +
                   " ranges are in use");
}

void release_id_range(const std::string& owner, uint32_t first) {
  if (first < kFirstRange) return;
  const std::string path = claim_path((first - kFirstRange) / kIdsOfRange);
  const auto holder = os::read_file(path, 4096);
  if (holder && *holder == owner) ::unlink(path.c_str());
}

Result<os::File> make_user_namespace(const IdRange& range) {
  const IdMap map{0, range.first, range.count};
  return make_user_namespace(map, map);
}

Result<void> try_user_namespace() {
  // The child has a copy of this process's memory, because a failed call sets errno.
  const auto child =
      pid_t(::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0));
  if (child < 0) return from_errno("making a user namespace");
  if (child == 0) ::_exit(::mount("proc", "/proc", "proc", 0, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return denied("trying a user namespace: the process in it was killed");
  if (WEXITSTATUS(status) != 0)
    return from_errno("mounting a /proc in a user namespace", WEXITSTATUS(status));
  return ok();
}

Result<os::File> make_user_namespace(const IdMap& users, const IdMap& groups) {
  int stay[2];
  if (::pipe2(stay, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File stay_there(stay[0]);
  os::File stay_here(stay[1]);
  alignas(16) char stack[kHolderStackBytes];
  // No signal handler of this process may run in the process that shares its memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child =
      ::clone(hold_namespace, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, stay);
  const int why = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return from_errno("making a user namespace", why);
  Result<os::File> held = [&]() -> Result<os::File> {
    TRY(write_map(child, "uid_map", users));
    TRY(write_map(child, "gid_map", groups));
    os::File file(
        ::open(("/proc/" + std::to_string(child) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return from_errno("opening a user namespace");
    return file;
  }();
  stay_here.close();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return held;
}

}  // namespace trainyard::containers

// Runs containers through an OCI runtime (crun), for images and for plain processes of this machine
// alike.
//
// A ContainerSpec describes the container; start_container() makes the bundle and runs it. A
// container ends with its Container object; remove_container() removes what a crash left (runtime
// state, cgroup, bundle). All mounts of a container are made in its own mount namespace, so they
// end with its last process; the caller needs no namespace of its own.
//
// A container has new user, mount, UTS, PID, IPC and (unless given) network namespaces. Its root
// has no rights on the machine (id_range.hpp) and may do to its own ids and files what packages
// expect of root. It has no new privileges, a system call filter (system_call_filter.hpp), its own
// /proc, /dev, /dev/shm and /tmp, and a read-only /sys. Images and mounts from the machine show the
// owners that they have on the machine, so no owner has to be changed; the machine's own system
// shows the overflow user. If the machine permits no user namespace or cannot map a file system,
// starting a container is denied, unless its spec allows best effort: then root has no capability,
// and chown, setuid and similar calls fail. The first process is PID 1 of its namespace: when it
// ends, the kernel kills the others, and a signal that it does not handle is not delivered.
//
// Threads: one Container is confined to one thread at a time, but signal(), kill_all() and usage()
// may come from any.
// Errors:  not_found (no runtime, no such program in the container), denied (this machine forbids
//          it; the message
// says how), exhausted, invalid (spec), internal (the runtime's message).
// Limits:  the caller must be root of this machine or of a rootless sandbox (rootless_sandbox.hpp);
//          else `denied`.
// In a rootless sandbox all containers share the user's own ids, nothing is mapped, and limits that
// were not delegated to the user are not set: withheld() lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::containers {

// A user and a group of this machine.
struct PosixIdentity {
  uint32_t user_id = 0, group_id = 0;
  bool operator==(const PosixIdentity&) const = default;
};

struct Mount {
  std::string source;       // path on the machine; "" for tmpfs
  std::string destination;  // absolute, inside
  bool read_only = true;
  uint64_t tmpfs_bytes = 0;  // for tmpfs: its size limit
  // For a directory that others use as well: the user and group as which the container's first user
  // reads and writes it. Other users of the container and other owners of files have no rights over
  // each other, and the container's root has none either. Unset: each id of the container is the
  // same id on this mount, which is right only for its own directories. In a rootless sandbox all
  // files are accessed as the server's user.
  std::optional<PosixIdentity> identity = {};
  // For a file system that cannot be mapped to other ids, and shows an owner that it is told: sets
  // the machine's ids of the container's first user as the owner, before each start of the runtime.
  // Set: the source is not mapped.
  std::function<Result<void>(const PosixIdentity& owner)> set_owner = {};
};

// A limit as setrlimit() has it; UINT64_MAX means unlimited.
struct ProcessLimit {
  std::string name;  // "nofile"
  uint64_t soft = 0, hard = 0;
  bool operator==(const ProcessLimit&) const = default;
};

struct ContainerSpec {
  std::string id;  // also the start of its cgroup's name: "j17a1-0"
  // for the bundle; belongs to the caller and this container alone; made when absent
  std::string directory;
  // The root: an unpacked image (a directory; a writable layer is mounted over it), or "" for this
  // machine's own system by allow-list: a new tmpfs with /usr, /bin, /sbin, /lib* and chosen files
  // of /etc mounted read-only.
  std::string image_root;
  // The directory of the writable layer over an image and of the kernel's work directory; made when
  // absent. "" = in `directory`. (An image that is copied because overlays are refused is copied
  // into `directory`.)
  std::string layer_directory = {};
  // In order; a mount at /tmp or /dev/shm replaces the usual one. A missing destination is made.
  // Mounts below a source are included.
  std::vector<Mount> mounts;
  std::vector<std::string> arguments;  // arguments[0] is searched on PATH in the container
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  std::string hostname;
  std::string network_namespace;  // path; "" = a new empty one
  double cpus = 0;                // 0 = no limit
  int64_t memory_bytes = 0;       // 0 = no limit; no swap in addition
  int64_t pids_max = 4096;
  // Where no cgroup can limit processes: limits those of each user of the container, which the
  // kernel counts by user namespace.
  bool pids_max_by_user = false;
  uint64_t shared_memory_bytes = 64 << 20;  // /dev/shm
  // Limits writes to /tmp and to the root of this machine's own system, which lie in memory; 0:
  // parts of memory_bytes. Images write to their layer, which is limited by its directory, and to
  // /tmp.
  uint64_t scratch_bytes_max = 0;
  uint32_t user_id = 0;  // of the first process (image.hpp resolves names)
  uint32_t group_id = 0;
  // device files of this machine that the container gets: "/dev/nvidia0"
  std::vector<std::string> devices;
  // of its processes, as far as allowed; others are the server's
  std::vector<ProcessLimit> limits = {};
  bool read_only_root = false;  // mounts in it stay writable
  // The standard input of the first process; it stays the caller's. -1: an empty one.
  int input = -1;
  // Runs without a user namespace where this machine or a writable mount permits none: as root
  // without any capability, which withheld() reports. Otherwise starting it is `denied`.
  bool best_effort_isolation = false;
};

struct ContainerExit {
  int code = 0;                // 128+n when ended by signal n
  bool out_of_memory = false;  // the memory limit killed one of its processes
  // a signal ended the runtime: the exit code of the process is unknown
  bool runtime_killed = false;
};

// Usage of a container: since its start, and now.
struct ContainerUsage {
  std::chrono::nanoseconds cpu{0};  // sum of all its processes
  int64_t memory_bytes = 0;         // without the page cache that can be freed
};

// The memory of one process of a container.
struct ProcessMemory {
  std::string name;  // as the process chose it, at most 15 bytes: printable ASCII, the rest as '?'
  int64_t bytes = 0;
};

class Container {
 public:
  // kills what still runs, removes runtime state and cgroup
  virtual ~Container() = default;
  virtual Result<void> signal(int number) = 0;  // to its first process
  virtual void kill_all() = 0;                  // SIGKILL to every process in it
  // Blocks until the first process ends or the time is over, and returns nothing then.
  virtual Result<std::optional<ContainerExit>> wait(Duration at_most) = 0;
  // Describes each requested property that this machine does not permit, a sentence each.
  virtual std::vector<std::string> withheld() const { return {}; }
  // True after the memory limit killed one of its processes.
  virtual bool out_of_memory() const { return false; }
  // Errors: unavailable, if this machine does not count usage.
  virtual Result<ContainerUsage> usage() {
    return unavailable("this container's usage is not counted");
  }
  // The processes that use most memory, largest first; none where they are not known.
  virtual std::vector<ProcessMemory> largest_processes(size_t /*count_max*/) { return {}; }
};

// Starts a container. `output`, the write end of a pipe, receives stdout and stderr of all its
// processes, and is closed by the callee. Returns once the first process is about to run (some 20
// ms).
Result<std::unique_ptr<Container>> start_container(const ContainerSpec& spec, int output);

// Removes what is left of a container whose starter died, and `directory`. Harmless when nothing is
// left.
Result<void> remove_container(const std::string& id, const std::string& directory);

// Kills and removes every container whose directory is `directory` or a direct child of it.
// Directories stay.
Result<void> remove_containers_in(const std::string& directory);

// Kills and removes every container of this machine whose starter has ended, and returns their
// names.
Result<std::vector<std::string>> sweep_containers();

}  // namespace trainyard::containers

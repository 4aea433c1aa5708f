// Runs containers through an OCI runtime (crun), from images or from the file system of this
// machine.
//
// A ContainerSpec describes the container; start_container() makes the bundle and runs it. A
// container ends with its Container object. remove_container() removes what a crash left (runtime
// state, cgroup, bundle). All mounts of a container are made in its own mount namespace, so they
// end with its last process.
//
// A container has new user, mount, UTS, PID, IPC and (unless given) network namespaces. Its root
// has no rights on the machine (id_range.hpp), but over its own ids and files it has the rights
// that packages expect of root. It has no new privileges, a system call filter
// (system_call_filter.hpp), its own /proc, /dev, /dev/shm and /tmp, and a read-only /sys. Images
// and mounts from the machine show the owners that they have on the machine, so no owners must be
// changed; the machine's own system shows the overflow user. If the machine permits no user
// namespace or cannot map a file system, starting a container is denied, unless its spec allows
// best effort: then root has no capabilities, and chown, setuid and similar calls fail. The first
// process is PID 1 of its namespace: when it ends, the kernel kills the others, and signals that it
// does not handle are not delivered.
//
// In a rootless sandbox all containers share the user's own ids, nothing is mapped, and limits that
// were not delegated to the user are not set: withheld() lists them.
//
// Threads: one Container is confined to one thread at a time, except signal(), kill_all() and
// usage(),
//          which are callable from anywhere.
// Errors:  not_found (no runtime, no such program in the container), denied (this machine forbids
// it;
//          the message explains it), exhausted, invalid (spec), internal (message of the runtime).
// Limits:  the caller must be root of this machine or of a rootless sandbox (rootless_sandbox.hpp);
//          otherwise `denied`.
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
  std::string source;       // path on the machine; "": a tmpfs
  std::string destination;  // absolute path in the container
  bool read_only = true;
  uint64_t tmpfs_bytes = 0;  // tmpfs: its size limit
  // For a shared directory: the user and group as which the first user of the container reads and
  // writes it. Other users of the container, even its root, have no rights on the mount. Unset:
  // each id of the container is the same id on this mount, which is correct only for the
  // container's own directories. In a rootless sandbox all files are accessed as the server's user.
  std::optional<PosixIdentity> identity = {};
  // For a file system that cannot be mapped to other ids, but whose owner can be set: called before
  // each start of the runtime with the machine's ids of the container's first user. If it is set,
  // the source is not mapped.
  std::function<Result<void>(const PosixIdentity& owner)> set_owner = {};
};

// A limit of setrlimit(); UINT64_MAX: unlimited.
struct ProcessLimit {
  std::string name;  // "nofile"
  uint64_t soft = 0, hard = 0;
  bool operator==(const ProcessLimit&) const = default;
};

struct ContainerSpec {
  std::string id;  // also the prefix of the name of its cgroup: "j17a1-0"
  // directory of the bundle, used only by the caller and this container; made if it is absent
  std::string directory;
  // The root: the directory of an unpacked image, over which a writable layer is mounted. "": this
  // machine's system by an allow-list: a new tmpfs, in which /usr, /bin, /sbin, /lib* and selected
  // files of /etc are mounted read-only.
  std::string image_root;
  // The directory of the writable layer over an image and of the kernel's work directory, which is
  // made if it is absent; "": in `directory`. (If overlays are not possible, the image is copied
  // into `directory`.)
  std::string layer_directory = {};
  // Mounted in this order. A mount at /tmp or /dev/shm replaces the usual one. A missing
  // destination is made. Mounts below a source are included.
  std::vector<Mount> mounts;
  std::vector<std::string> arguments;  // arguments[0] is searched on PATH in the container
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  std::string hostname;
  std::string network_namespace;  // path; "": a new empty one
  double cpus = 0;                // 0: no limit
  int64_t memory_bytes = 0;       // 0: no limit; without swap
  int64_t pids_max = 4096;
  // true: limits the processes of each user of the container, which the kernel counts by user
  // namespace; for machines on which no cgroup can limit them.
  bool pids_max_by_user = false;
  uint64_t shared_memory_bytes = 64 << 20;  // /dev/shm
  // Limits writes to /tmp and, without an image, to the root, which are in memory; 0: parts of
  // memory_bytes. Images write to their layer, which its directory limits, and to /tmp.
  uint64_t scratch_bytes_max = 0;
  uint32_t user_id = 0;  // user of the first process (image.hpp resolves names)
  uint32_t group_id = 0;
  // device files of this machine that the container gets: "/dev/nvidia0"
  std::vector<std::string> devices;
  // limits of its processes, as far as permitted; other limits are inherited from the server
  std::vector<ProcessLimit> limits = {};
  bool read_only_root = false;  // writable mounts in it stay writable
  // The standard input of the first process, which the caller still owns; -1: an empty standard
  // input.
  int input = -1;
  // If this machine or a writable mount permits no user namespace: true: runs without one, as root
  // without capabilities, which withheld() reports; false: the start is `denied`.
  bool best_effort_isolation = false;
};

struct ContainerExit {
  int code = 0;                // exit code of the first process; 128+n: ended by signal n
  bool out_of_memory = false;  // the memory limit killed one of its processes
  // a signal ended the runtime, so the exit code of the process is unknown
  bool runtime_killed = false;
};

// The usage of a container.
struct ContainerUsage {
  std::chrono::nanoseconds cpu{0};  // since its start, sum of all its processes
  int64_t memory_bytes = 0;         // now, without page cache that can be freed
};

// The memory of one process of a container.
struct ProcessMemory {
  std::string name;  // chosen by the process: at most 15 bytes of printable ASCII, others are '?'
  int64_t bytes = 0;
};

class Container {
 public:
  // kills all processes that still run, removes runtime state and cgroup
  virtual ~Container() = default;
  virtual Result<void> signal(int number) = 0;  // signals its first process
  virtual void kill_all() = 0;                  // sends SIGKILL to all its processes
  // Blocks until the first process ends. Returns nullopt if it has not ended after `at_most`.
  virtual Result<std::optional<ContainerExit>> wait(Duration at_most) = 0;
  // Returns a sentence for each requested property that this machine does not permit.
  virtual std::vector<std::string> withheld() const { return {}; }
  // Returns true if the memory limit has killed one of its processes.
  virtual bool out_of_memory() const { return false; }
  // Errors: unavailable, if this machine does not count usage.
  virtual Result<ContainerUsage> usage() {
    return unavailable("this container's usage is not counted");
  }
  // Returns the processes that use most memory, largest first; empty if they are not known.
  virtual std::vector<ProcessMemory> largest_processes(size_t /*count_max*/) { return {}; }
};

// Starts a container. `output`, the write end of a pipe, receives stdout and stderr of all its
// processes; this function closes it. Returns when the first process is about to run (after about
// 20 ms).
Result<std::unique_ptr<Container>> start_container(const ContainerSpec& spec, int output);

// Removes what is left of a container whose starter died, and `directory`. Does nothing if nothing
// is left.
Result<void> remove_container(const std::string& id, const std::string& directory);

// Kills and removes every container whose directory is `directory` or a direct child of it.
// The directories stay.
Result<void> remove_containers_in(const std::string& directory);

// Kills and removes every container of this machine whose starter has ended, and returns their
// names.
Result<std::vector<std::string>> sweep_containers();

}  // namespace trainyard::containers

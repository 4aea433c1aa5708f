// Containers through an OCI runtime (crun), for images and for plain processes of this machine alike.
//
// A spec says what the inside looks like; start_container() makes the bundle and runs it. The container
// survives nothing of ours: who started it kills it, and remove_container() sweeps what a crash left (runtime
// state, cgroup, bundle). All mounts of a container are made in a mount namespace of its own, so they end
// with its last process; the caller needs no namespace of its own.
//
// Inside: new user, mount, UTS, PID, IPC and (unless given) network namespaces; root is nobody on the machine
// (id_range.hpp) and may do to its own ids and files what packages expect of root; no new privileges; a system
// call filter (system_call_filter.hpp); its own /proc, /dev, /dev/shm, /tmp; /sys read-only. Images and what is mounted
// from the machine show the owners that they have there, so nothing needs to be given away or back; the machine's
// own system shows as nobody's. Where the machine does not let us make user namespaces or map a file system, starting
// a container is denied, unless its spec asks for best effort: then root has no capability at all instead, and chown,
// setuid and their like fail. The first process is PID 1 of its
// namespace: when it ends, the kernel kills the rest, and a signal that it does not handle is not delivered.
//
// Threads: one Container is confined to one thread at a time, but signal(), kill_all() and usage() may come
// from any. Errors: not_found (no runtime, no such program inside), denied (this machine does not let us, in
// words), exhausted,
//         invalid (spec), internal (the runtime's words).
// Limits: as root of this machine, or of an enclosure (enclosure.hpp); else `denied`. In an enclosure all containers
// share the user's own ids, nothing is mapped, and limits that were not delegated to the user are not set: withheld()
// says which.
#pragma once

#include <chrono>
#include <cstdint>
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
  // Of a directory that others use as well: as whom the container's first user reads and writes there. All others of
  // the container, and all other owners of files, are nobody to each other; root of the container is no root there.
  // Unset: each id of the container is the same id on this mount, which holds only for directories of its own. In an
  // enclosure all of it is the server's user.
  std::optional<PosixIdentity> identity = {};
};

// As setrlimit() has it; UINT64_MAX is none.
struct ProcessLimit {
  std::string name;  // "nofile"
  uint64_t soft = 0, hard = 0;
  bool operator==(const ProcessLimit&) const = default;
};

struct ContainerSpec {
  std::string id;         // also the start of its cgroup's name: "j17a1-0"
  std::string directory;  // where the bundle is made; owned by the caller, nothing else's; made when absent
  // The root: an unpacked image (a directory; a writable layer is put over it), or "" for this machine's own
  // system by allow-list: a fresh tmpfs with /usr, /bin, /sbin, /lib* and chosen files of /etc bound
  // read-only.
  std::string image_root;
  // Where the writable layer over an image lies, and what the kernel needs beside it; made when absent. "" = in
  // `directory`. (An image that is copied for want of overlays is copied into `directory`.)
  std::string layer_directory = {};
  // In order; one whose destination is /tmp or /dev/shm takes the place of the usual one. A missing
  // destination is made. What is mounted below a source comes along.
  std::vector<Mount> mounts;
  std::vector<std::string> arguments;  // arguments[0] is found on PATH inside
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  std::string hostname;
  std::string network_namespace;  // path; "" = a new empty one
  double cpus = 0;                // 0 = no limit
  int64_t memory_bytes = 0;       // 0 = no limit; swap is not given on top
  int64_t pids_max = 4096;
  // Where no cgroup can: each user inside may have so many processes, which the kernel counts by user namespace.
  bool pids_max_by_user = false;
  uint64_t shared_memory_bytes = 64 << 20;  // /dev/shm
  // What may be written to the root of this machine's own system and to /tmp, which lie in memory; 0: parts of
  // memory_bytes. Images write to their layer instead, which is as large as its directory allows, and to /tmp.
  uint64_t scratch_bytes_max = 0;
  uint32_t user_id = 0;  // as whom the first process runs (image.hpp resolves names)
  uint32_t group_id = 0;
  std::vector<std::string> devices;       // device files of this machine that appear inside: "/dev/nvidia0"
  std::vector<ProcessLimit> limits = {};  // of its processes, as far as the machine allows; others are ours
  bool read_only_root = false;            // what is mounted into it is written all the same
  // A descriptor that the first process has as its standard input; it stays the caller's. -1: an empty one.
  int input = -1;
  // Where this machine or a writable mount does not let it have a user namespace of its own: run without one, as root
  // without any capability, and say so in withheld(). Otherwise starting it is `denied`.
  bool best_effort_isolation = false;
};

struct ContainerExit {
  int code = 0;                // 128+n when ended by signal n
  bool out_of_memory = false;  // the memory limit killed a process of it
  bool runtime_killed =
      false;  // it was the runtime that a signal ended: how the process would have ended nobody knows
};

// What a container has used so far, and holds now.
struct ContainerUsage {
  std::chrono::nanoseconds cpu{0};  // of all its processes, added up
  int64_t memory_bytes = 0;         // without the page cache that can be given back
};

class Container {
 public:
  virtual ~Container() = default;               // kills what still runs, removes runtime state and cgroup
  virtual Result<void> signal(int number) = 0;  // to its first process
  virtual void kill_all() = 0;                  // SIGKILL to every process in it
  // Blocks until the first process ends or the duration is over (nothing then).
  virtual Result<std::optional<ContainerExit>> wait(Duration at_most) = 0;
  // What was asked for and this machine does not let us do, a sentence each.
  virtual std::vector<std::string> withheld() const { return {}; }
  // Whether the memory limit has killed a process of it.
  virtual bool out_of_memory() const { return false; }
  // Errors: unavailable, where this machine does not count.
  virtual Result<ContainerUsage> usage() { return unavailable("this container's usage is not counted"); }
};

// `output` receives stdout and stderr of every process inside: the write end of a pipe, taken over. Returns
// once the first process is about to run (some 20 ms).
Result<std::unique_ptr<Container>> start_container(const ContainerSpec& spec, int output);

// Sweeps what is left of a container whose starter died. Harmless when there is nothing. `directory` itself
// goes too.
Result<void> remove_container(const std::string& id, const std::string& directory);

// Kills and removes every container whose directory is `directory` or lies right in it. Directories stay.
Result<void> remove_containers_in(const std::string& directory);

// Kills and removes every container of this machine whose starter is no more; their names.
Result<std::vector<std::string>> sweep_containers();

}  // namespace trainyard::containers

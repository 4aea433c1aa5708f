// Containers through an OCI runtime (crun), for images and for plain processes of this machine alike.
//
// A spec says what the inside looks like; start() makes the bundle and runs it. The container survives nothing of ours:
// who started it kills it, and remove_container() sweeps what a crash left (runtime state, cgroup, bundle).
//
// Threads: one Container is confined to one thread at a time, but signal() may come from any.
// Errors: not_found (no runtime, no such program inside), denied, exhausted, invalid (spec), internal (runtime's words).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::host {

struct Mount {
  std::string source;       // path on the machine; "" for tmpfs
  std::string destination;  // absolute, inside
  bool read_only = true;
  uint64_t tmpfs_bytes = 0; // for tmpfs: its size limit
};

struct ContainerSpec {
  std::string id;            // also its cgroup's last name: "j17a1-0"
  std::string directory;     // where the bundle is made; owned by the caller
  // The root: an unpacked image (a directory; a writable layer is put over it), or "" for this machine's own system by
  // allow-list: a fresh tmpfs with /usr, /bin, /sbin, /lib* and chosen files of /etc bound read-only.
  std::string image_root;
  std::vector<Mount> mounts;
  std::vector<std::string> arguments;  // arguments[0] is found on PATH inside
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  std::string hostname;
  std::string network_namespace;       // path; "" = a new empty one
  double cpus = 0;                     // 0 = no limit
  int64_t memory_bytes = 0;            // 0 = no limit
  int64_t pids_max = 4096;
  uint64_t shared_memory_bytes = 64 << 20;  // /dev/shm
};

struct ContainerExit {
  int code = 0;                // 128+n when ended by signal n
  bool out_of_memory = false;  // the memory limit killed a process of it
};

class Container {
 public:
  virtual ~Container() = default;  // kills what still runs, removes runtime state and cgroup
  virtual Result<void> signal(int number) = 0;  // to its first process
  virtual void kill_all() = 0;                  // SIGKILL to every process in it
  // Blocks until the first process ends or the duration is over (nothing then).
  virtual Result<std::optional<ContainerExit>> wait(Duration at_most) = 0;
};

// `output` receives stdout and stderr of every process inside: the write end of a pipe, taken over.
Result<std::unique_ptr<Container>> start_container(const ContainerSpec& spec, int output);

// Sweeps what is left of a container whose starter died. Harmless when there is nothing.
Result<void> remove_container(const std::string& id, const std::string& directory);

}  // namespace trainyard::host

// Control groups of containers: made, limited, counted, killed and removed, under v1, hybrid and v2 alike.
//
// Ours lie below /trainyard in every hierarchy that we use. A group's name is the container's id and a short
// hash of its directory, so two servers on one machine do not meet.
//
// Threads: callable from anywhere; a Cgroup is immutable. Errors: denied (read-only or not delegated), by
// errno.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::host {

enum class CgroupMode {
  none,
  v1,
  hybrid,  // v1 controllers, and a v2 hierarchy beside them
  v2,
};

// One mounted hierarchy.
struct CgroupHierarchy {
  std::string path;                      // "/sys/fs/cgroup/memory"
  std::vector<std::string> controllers;  // {"memory"}; for v2 all that it offers
  bool unified = false;
};

struct CgroupLayout {
  CgroupMode mode = CgroupMode::none;
  std::vector<CgroupHierarchy> hierarchies;
  // The hierarchy that has `controller`; null when none has.
  const CgroupHierarchy* with(std::string_view controller) const;
  // Where a hybrid machine's v2 hierarchy is mounted; "" elsewhere. crun refuses to start while it offers a
  // controller.
  std::string hybrid_unified;
};

// Pure: from the text of /proc/self/mountinfo. What a v2 hierarchy offers is not said there.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo);
// This machine's, read once.
const CgroupLayout& cgroup_layout();

struct CgroupLimits {
  double cpus = 0;                   // 0 = no limit
  int64_t memory_bytes = 0;          // 0 = no limit
  int64_t pids_max = 0;              // 0 = no limit
  std::vector<std::string> devices;  // device files beyond the harmless usual ones
};

// "j17a1-0.3f9a1c20": see above.
std::string cgroup_name(std::string_view id, std::string_view directory);

class Cgroup {
 public:
  // Makes and limits it. Errors: denied, naming the controller that cannot be limited.
  static Result<Cgroup> make(const std::string& name, const CgroupLimits& limits);
  // One that is there, or partly there.
  static Cgroup named(const std::string& name);
  // Of all that carry our prefix.
  static std::vector<std::string> names();

  // What it may use from now on. Later than the other limits, since a tenth of a cpu would hold up the start
  // of what runs in it for a second. 0 = no limit.
  Result<void> limit_cpus(double cpus) const;

  // Files into which a process writes "0" to move itself in. (v1: `tasks`, which needs no lock over all
  // processes; a caller with one thread only.)
  const std::vector<std::string>& entrances() const { return entrances_; }
  bool exists() const;
  std::vector<int> processes() const;
  // Whether the memory limit killed a process in it.
  bool out_of_memory() const;
  std::optional<std::chrono::nanoseconds> cpu_used() const;
  std::optional<int64_t> memory_used() const;
  // Kills every process in it, forks under way included, and waits until they are gone.
  Result<void> kill(Duration at_most) const;
  // Removes the directories. Requires: no process in it.
  Result<void> remove() const;

 private:
  std::string name_;
  std::vector<std::string> directories_;
  std::vector<std::string> entrances_;
  std::string directory(std::string_view controller) const;
};

}  // namespace trainyard::host

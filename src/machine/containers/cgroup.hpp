// Makes, limits, measures, kills and removes the control groups of containers, under v1, hybrid and
// v2.
//
// The server's groups are below /trainyard in every hierarchy that it uses. Those of an ordinary
// user are below the user's own group, if it was delegated. The name of a group is the container's
// id and a short hash of its directory, so that two servers on one machine use different names.
//
// Threads: callable from anywhere; a Cgroup is immutable. Errors: denied (read-only or not
// delegated), by errno.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::containers {

enum class CgroupMode {
  none,
  v1,
  hybrid,  // v1 controllers and a v2 hierarchy
  v2,
};

// A mounted hierarchy.
struct CgroupHierarchy {
  std::string path;                      // "/sys/fs/cgroup/memory"
  std::vector<std::string> controllers;  // {"memory"}; v2: all controllers that it offers
  bool unified = false;
  std::string root = "/";  // the group that is visible at `path`
  std::string base = {};   // path below `path` of the parent of the server's groups
};

struct CgroupLayout {
  CgroupMode mode = CgroupMode::none;
  std::vector<CgroupHierarchy> hierarchies;
  // Returns the hierarchy that has `controller`; null if none has it.
  const CgroupHierarchy* with(std::string_view controller) const;
  // The mount point of the v2 hierarchy of a hybrid machine; otherwise "". crun does not start
  // while it offers a controller.
  std::string hybrid_unified;
};

// Parses the text of /proc/self/mountinfo, which does not contain the controllers of a v2
// hierarchy. Pure.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo);
// Returns the part of the layout that was delegated to an ordinary user: below the user's groups
// (`own_groups` is the text of /proc/self/cgroup) in which the user may make groups. `writable`
// returns true if the user may write in the directory of a group. Pure.
CgroupLayout delegated_layout(const CgroupLayout& layout, std::string_view own_groups,
                              const std::function<bool(const std::string& directory)>& writable);
// Adds the controllers of the v2 hierarchy: those in cgroup.controllers of the parent of the
// server's groups.
CgroupLayout with_offered_controllers(CgroupLayout layout);
// Returns the layout of this machine, which is read once.
const CgroupLayout& machine_cgroup_layout();
// Returns the layout that the server uses: that of the machine, or the part that is delegated to
// its user.
const CgroupLayout& cgroup_layout();
// Moves these processes into a leaf group below their own, since a v2 group with processes cannot
// limit groups below it. Does nothing in other modes.
void move_to_leaf_cgroup(const std::vector<int>& processes);

struct CgroupLimits {
  double cpus = 0;                   // 0: no limit
  int64_t memory_bytes = 0;          // 0: no limit
  int64_t pids_max = 0;              // 0: no limit
  std::vector<std::string> devices;  // device files in addition to harmless ones such as /dev/null
};

// One step of making a group. The steps are carried out in order.
struct CgroupStep {
  enum class What {
    make,                // makes the directory
    write,               // writes `value` to the file
    write_if_exists,     // writes it, if this kernel has the file
    write_if_permitted,  // writes a weight, which a group does not need
  };
  What what = What::make;
  std::string path;
  std::string value = {};
};
// Plans the steps that make a group. `machine_cpus` are the cpus of the machine, which all groups
// of the server share. `device_rules` are lines for v1's devices.allow. Errors: denied, with the
// controller that the layout lacks. Pure.
Result<std::vector<CgroupStep>> plan_cgroup(const CgroupLayout& layout, const std::string& name,
                                            const CgroupLimits& limits, double machine_cpus,
                                            const std::vector<std::string>& device_rules);
std::vector<CgroupStep> plan_cpu_limit(const CgroupLayout& layout, const std::string& name,
                                       double cpus);

// Returns the name of a container's group: "j17a1-0.3f9a1c20".
std::string cgroup_name(std::string_view id, std::string_view directory);

class Cgroup {
 public:
  // Makes a group and sets its limits. Errors: denied, with the controller that cannot be limited.
  static Result<Cgroup> make(const std::string& name, const CgroupLimits& limits,
                             const CgroupLayout& layout = cgroup_layout());
  // Returns an existing group, which may be incomplete. Lifetime: the layout outlives it.
  static Cgroup named(const std::string& name, const CgroupLayout& layout = cgroup_layout());
  // Returns the names of all groups of servers (below /trainyard).
  static std::vector<std::string> names();

  // Limits its cpus from now on; 0: no limit. Called after the container has started, since a tenth
  // of a cpu would delay the start of a program by a second.
  Result<void> limit_cpus(double cpus) const;

  // Returns the files to which a process writes "0" to enter the group. (For v1 `tasks`, which
  // needs no lock over all processes; the caller must have one thread.)
  const std::vector<std::string>& entrances() const { return entrances_; }
  bool exists() const;
  std::vector<int> processes() const;
  // Returns true if the memory limit has killed a process of the group.
  bool out_of_memory() const;
  std::optional<std::chrono::nanoseconds> cpu_used() const;
  std::optional<int64_t> memory_used() const;
  // Kills every process of the group, even those that are being forked, and waits for their end.
  Result<void> kill(Duration at_most) const;
  // Removes the directories of the group. Requires: it has no processes.
  Result<void> remove() const;

 private:
  std::string name_;
  const CgroupLayout* layout_ = nullptr;
  std::vector<std::string> directories_;
  std::vector<std::string> entrances_;
  // Returns the directory of the group; "" if no hierarchy has this controller.
  std::string directory(std::string_view controller) const;
};

}  // namespace trainyard::containers

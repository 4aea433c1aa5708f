// Makes, limits, counts, kills and removes the control groups of containers, under v1, hybrid and
// v2 alike.
//
// The server's groups lie below /trainyard in every hierarchy that it uses; those of an ordinary
// user lie below the user's own group, where that was delegated. A group's name is the container's
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
  hybrid,  // v1 controllers, and next to them a v2 hierarchy
  v2,
};

// One mounted hierarchy.
struct CgroupHierarchy {
  std::string path;                      // "/sys/fs/cgroup/memory"
  std::vector<std::string> controllers;  // {"memory"}; for v2 all that it offers
  bool unified = false;
  std::string root = "/";  // the group that is visible at `path`
  std::string base = {};   // below `path`: the parent of the server's groups
};

struct CgroupLayout {
  CgroupMode mode = CgroupMode::none;
  std::vector<CgroupHierarchy> hierarchies;
  // The hierarchy that has `controller`; null when none has.
  const CgroupHierarchy* with(std::string_view controller) const;
  // The mount point of a hybrid machine's v2 hierarchy; "" elsewhere. crun refuses to start while
  // it offers a controller.
  std::string hybrid_unified;
};

// Parses the text of /proc/self/mountinfo, which does not tell the controllers of a v2 hierarchy.
// Pure.
CgroupLayout parse_cgroup_layout(std::string_view mountinfo);
// Returns the part that was delegated to an ordinary user: below the groups that the user is in
// (`own_groups`: the text of /proc/self/cgroup), where the user may make others. `writable` tells
// this of a group's directory. Pure.
CgroupLayout delegated_layout(const CgroupLayout& layout, std::string_view own_groups,
                              const std::function<bool(const std::string& directory)>& writable);
// Adds the controllers of the v2 hierarchy, as cgroup.controllers of the parent of the server's
// groups lists them.
CgroupLayout with_offered(CgroupLayout layout);
// The layout of this machine; read once.
const CgroupLayout& machine_cgroup_layout();
// The layout that the server uses: that of the machine, or the part that is delegated to its user.
const CgroupLayout& cgroup_layout();
// Moves these processes into a group next to the server's own: a v2 group with processes cannot
// limit groups below it. Harmless elsewhere.
void move_to_leaf_cgroup(const std::vector<int>& processes);

struct CgroupLimits {
  double cpus = 0;                   // 0 = no limit
  int64_t memory_bytes = 0;          // 0 = no limit
  int64_t pids_max = 0;              // 0 = no limit
  std::vector<std::string> devices;  // device files in addition to the harmless usual ones
};

// One step of making a group, as text. The steps are carried out in order.
struct CgroupStep {
  enum class What {
    make,             // the directory
    write,            // `value` to the file
    write_if_there,   // if this kernel has such a file
    write_if_we_may,  // weights: a group without a weight works as well
  };
  What what = What::make;
  std::string path;
  std::string value = {};
};
// Plans the steps. Errors: denied, naming the controller that the layout lacks. `machine_cpus`: the
// cpus of the machine, which all of the server's groups share. `device_rules`: lines for v1's
// devices.allow. Pure.
Result<std::vector<CgroupStep>> plan_cgroup(const CgroupLayout& layout, const std::string& name,
                                            const CgroupLimits& limits, double machine_cpus,
                                            const std::vector<std::string>& device_rules);
std::vector<CgroupStep> plan_cpu_limit(const CgroupLayout& layout, const std::string& name,
                                       double cpus);

// Returns the group's name: "j17a1-0.3f9a1c20".
std::string cgroup_name(std::string_view id, std::string_view directory);

class Cgroup {
 public:
  // Makes the group and limits it. Errors: denied, naming the controller that cannot be limited.
  static Result<Cgroup> make(const std::string& name, const CgroupLimits& limits,
                             const CgroupLayout& layout = cgroup_layout());
  // Names a group that exists, at least partly. The layout must outlive it.
  static Cgroup named(const std::string& name, const CgroupLayout& layout = cgroup_layout());
  // Names of all groups with the server's prefix.
  static std::vector<std::string> names();

  // Limits its cpus from now on; 0 = no limit. Set after the other limits, since a tenth of a cpu
  // would delay the start of a program by a second.
  Result<void> limit_cpus(double cpus) const;

  // Files into which a process writes "0" to move itself in. (v1: `tasks`, which needs no lock over
  // all processes; the caller must have one thread only.)
  const std::vector<std::string>& entrances() const { return entrances_; }
  bool exists() const;
  std::vector<int> processes() const;
  // True after the memory limit killed a process of the group.
  bool out_of_memory() const;
  std::optional<std::chrono::nanoseconds> cpu_used() const;
  std::optional<int64_t> memory_used() const;
  // Kills every process of the group, also those that are being forked, and waits for their end.
  Result<void> kill(Duration at_most) const;
  // Removes the directories. Requires: no process in it.
  Result<void> remove() const;

 private:
  std::string name_;
  const CgroupLayout* layout_ = nullptr;
  std::vector<std::string> directories_;
  std::vector<std::string> entrances_;
  // The group's directory; "" where no hierarchy has that controller.
  std::string directory(std::string_view controller) const;
};

}  // namespace trainyard::containers

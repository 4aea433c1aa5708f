// Control groups of containers: made, limited, counted, killed and removed, under v1, hybrid and v2 alike.
//
// Ours lie below /trainyard in every hierarchy that we use; an ordinary user's lie below the group that he himself was
// put into, where that was delegated to him. A group's name is the container's id and a short hash of its directory, so
// two servers on one machine do not meet.
//
// Threads: callable from anywhere; a Cgroup is immutable. Errors: denied (read-only or not delegated), by
// errno.
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
  hybrid,  // v1 controllers, and a v2 hierarchy beside them
  v2,
};

// One mounted hierarchy.
struct CgroupHierarchy {
  std::string path;                      // "/sys/fs/cgroup/memory"
  std::vector<std::string> controllers;  // {"memory"}; for v2 all that it offers
  bool unified = false;
  std::string root = "/";  // which group is seen at `path`
  std::string base = {};   // below `path`: the group in which ours are made
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
// Pure: the part of it that was delegated to an ordinary user: below the groups that he is in (`own_groups`: the text
// of /proc/self/cgroup), where he may make others. `writable` answers for a group's directory.
CgroupLayout delegated_layout(const CgroupLayout& layout, std::string_view own_groups,
                              const std::function<bool(const std::string& directory)>& writable);
// With what its v2 hierarchy offers, by the file cgroup.controllers of the group in which ours are made.
CgroupLayout with_offered(CgroupLayout layout);
// This machine's; read once.
const CgroupLayout& machine_cgroup_layout();
// In which our own groups are: the same, or what of it is delegated to us.
const CgroupLayout& cgroup_layout();
// A v2 group that has processes cannot limit groups below it: moves these into one of their own beside ours. Harmless
// elsewhere.
void make_room_for_cgroups(const std::vector<int>& processes);

struct CgroupLimits {
  double cpus = 0;                   // 0 = no limit
  int64_t memory_bytes = 0;          // 0 = no limit
  int64_t pids_max = 0;              // 0 = no limit
  std::vector<std::string> devices;  // device files beyond the harmless usual ones
};

// What making a group is: steps on text, in order.
struct CgroupStep {
  enum class What {
    make,             // the directory
    write,            // `value` to the file
    write_if_there,   // where this kernel has such a file
    write_if_we_may,  // weights: what cannot be weighed runs all the same
  };
  What what = What::make;
  std::string path;
  std::string value = {};
};
// Pure. Errors: denied, naming the controller that the layout lacks. `machine_cpus`: how many all of ours are worth
// together. `device_rules`: lines for v1's devices.allow.
Result<std::vector<CgroupStep>> plan_cgroup(const CgroupLayout& layout, const std::string& name,
                                            const CgroupLimits& limits, double machine_cpus,
                                            const std::vector<std::string>& device_rules);
std::vector<CgroupStep> plan_cpu_limit(const CgroupLayout& layout, const std::string& name, double cpus);

// "j17a1-0.3f9a1c20": see above.
std::string cgroup_name(std::string_view id, std::string_view directory);

class Cgroup {
 public:
  // Makes and limits it. Errors: denied, naming the controller that cannot be limited.
  static Result<Cgroup> make(const std::string& name, const CgroupLimits& limits,
                             const CgroupLayout& layout = cgroup_layout());
  // One that is there, or partly there. The layout must outlive it.
  static Cgroup named(const std::string& name, const CgroupLayout& layout = cgroup_layout());
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
  const CgroupLayout* layout_ = nullptr;
  std::vector<std::string> directories_;
  std::vector<std::string> entrances_;
  // Of the group; "" where no hierarchy has that controller.
  std::string directory(std::string_view controller) const;
};

}  // namespace trainyard::containers

// Plans and carries out the steps between the fork and the runtime's start: cgroups, mount and
// network namespace, and the stage (oci_bundle.hpp) with the container's root and mounts. The steps
// are text made before, so that carrying them out needs system calls only.
//
// Threads: plain values; carry_out() by a process with one thread. Errors: errno; explain()
// describes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "containers/cgroup.hpp"
#include "containers/oci_bundle.hpp"

namespace trainyard::containers {

struct PlanStep {
  enum class What {
    enter_cgroup,
    private_mounts,
    unmount,
    enter_network,
    mount_tmpfs,
    mount_sysfs,
    mount_overlay,
    make_directory,
    make_file,
    make_link,
    give,  // change the owner to the container's root
    bind,
    // with the mounts below it: mounts from a namespace of more rights stay together
    bind_all,
    bind_mapped,         // by the container's ids
    bind_mapped_or_not,  // if the file system cannot be mapped, its files show the overflow user
  };
  What what = What::private_mounts;
  std::string first;        // path
  std::string second;       // options, source, link's target
  unsigned mode = 0;        // of the new file; for binds: the attributes (MOUNT_ATTR_..)
  bool of_image = false;    // the image's file system may be the cause of a failure
  int user_namespace = -1;  // for mapped binds: another namespace whose ids are used
};

class ChildPlan {
 public:
  // `ids`: the new owners of files that change their owner. `user_namespace`: a descriptor that
  // maps them, for bind_mapped; it must stay open as long as the plan is used.
  ChildPlan(std::optional<IdRange> ids, int user_namespace)
      : ids_(ids), user_namespace_(user_namespace) {}
  void add(PlanStep step) { steps_.push_back(std::move(step)); }
  const std::vector<PlanStep>& steps() const { return steps_; }
  // Carries out one step: 0 or an error number. Requires: the caller has one thread.
  int carry_out(size_t index) const;
  Error explain(size_t index, int error_number) const;

 private:
  std::vector<PlanStep> steps_;
  std::optional<IdRange> ids_;
  int user_namespace_;
};

// True if a mount of the file system at `path` can be mapped to those ids; else errno has the
// reason. Leaves nothing.
bool can_map(const std::string& path, int user_namespace);

enum class RootKind { tmpfs, overlay, copy };

// Plans all steps of a container. `identity_namespaces`: for each mount, by index, the user
// namespace that maps its identity; -1 or no element: the mount has no identity.
Result<ChildPlan> make_plan(const ContainerSpec& spec, const Bundle& bundle, const Stage& stage,
                            const Cgroup& cgroup, RootKind kind, std::optional<IdRange> ids,
                            int user_namespace, const std::vector<int>& identity_namespaces);

// Adds the steps that bind the runtime, read-only, into the stage, from where it is started. A
// runtime that can be written starts itself again from such a mount, so that no container can
// overwrite it: the second start takes a twelfth of all that a container takes.
void add_runtime(ChildPlan& plan, const Stage& stage, const std::string& runtime);

// The directory of the layer over an image.
inline const std::string& layer_directory_of(const ContainerSpec& spec) {
  return spec.layer_directory.empty() ? spec.directory : spec.layer_directory;
}

// The directory of the runtime's state, by the names of cgroups. All containers share it.
std::string runtime_root();

// Names below layer_directory_of(), and below a container's own directory.
inline constexpr const char* kUpperDirectory = "upper";  // the writable layer over an image
inline constexpr const char* kWorkDirectory = "work";
inline constexpr const char* kCopyDirectory = "copy";  // of an image, if overlays are refused

}  // namespace trainyard::containers

// Plans and carries out the steps between the fork and the start of the runtime: cgroups, mount and
// network namespace, and the stage (oci_bundle.hpp) with the container's root and mounts. All texts
// are made before the fork, so that carrying out a step needs only system calls.
//
// Threads: plain values; carry_out() is called by a process with one thread. Errors: errno, which
// explain() describes.
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
    give,  // changes the owner to the container's root
    bind,
    // binds a directory with the mounts below it, which a namespace with fewer rights cannot
    // separate
    bind_all,
    bind_mapped,         // maps the mount to the container's ids
    bind_mapped_or_not,  // the same; if it cannot be mapped, its files show the overflow user
  };
  What what = What::private_mounts;
  std::string first;        // path
  std::string second;       // options, source or target of a link
  unsigned mode = 0;        // mode of the new file; for binds: attributes (MOUNT_ATTR_..)
  bool of_image = false;    // the file system of the image may be the cause of a failure
  int user_namespace = -1;  // for mapped binds: another namespace whose ids are used
};

class ChildPlan {
 public:
  // `ids` are the new owners for `give`. `user_namespace` is the descriptor of the namespace that
  // maps them, for bind_mapped; it must stay open while the plan is used.
  ChildPlan(std::optional<IdRange> ids, int user_namespace)
      : ids_(ids), user_namespace_(user_namespace) {}
  void add(PlanStep step) { steps_.push_back(std::move(step)); }
  const std::vector<PlanStep>& steps() const { return steps_; }
  // Carries out one step. Returns 0 or an error number. Requires: the caller has one thread.
  int carry_out(size_t index) const;
  Error explain(size_t index, int error_number) const;

 private:
  std::vector<PlanStep> steps_;
  std::optional<IdRange> ids_;
  int user_namespace_;
};

// Returns true if a mount of the file system at `path` can be mapped to the ids of the namespace;
// otherwise errno has the reason. The mount that it tries is removed.
bool can_map(const std::string& path, int user_namespace);

enum class RootKind { tmpfs, overlay, copy };

// Plans all steps of a container. `identity_namespaces` has, by the index of each mount, the user
// namespace that maps its identity; -1 or no element: the mount has no identity.
Result<ChildPlan> make_plan(const ContainerSpec& spec, const Bundle& bundle, const Stage& stage,
                            const Cgroup& cgroup, RootKind kind, std::optional<IdRange> ids,
                            int user_namespace, const std::vector<int>& identity_namespaces);

// Adds the steps that bind the runtime read-only into the stage, from where it is started. A
// runtime that is started from a writable path starts itself again from such a mount, so that no
// container can overwrite it. That second start would take a twelfth of the start of a container.
void add_runtime(ChildPlan& plan, const Stage& stage, const std::string& runtime);

// Returns the directory of the layer over an image.
inline const std::string& layer_directory_of(const ContainerSpec& spec) {
  return spec.layer_directory.empty() ? spec.directory : spec.layer_directory;
}

// Returns the directory of the runtime's state, which all containers share: a subdirectory for
// each, named like its cgroup.
std::string runtime_root();

// Names below layer_directory_of(), and below a container's own directory.
inline constexpr const char* kUpperDirectory = "upper";  // the writable layer over an image
inline constexpr const char* kWorkDirectory = "work";
inline constexpr const char* kCopyDirectory = "copy";  // of an image, if overlays are refused

}  // namespace trainyard::containers

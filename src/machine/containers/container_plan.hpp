// What is done between the fork and the runtime's start: cgroups, mount and network namespace, and the stage
// (oci_bundle.hpp) with the container's root and all that it is given. As steps on text made before, so that
// carrying them out is system calls only.
//
// Threads: plain values; carry_out() by a process with one thread. Errors: by errno, explain() puts them in
// words.
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
    give,  // to the container's root
    bind,
    bind_all,     // with what is mounted below it: what came from a namespace of more rights stays together
    bind_mapped,  // by the container's ids
    bind_mapped_or_not,  // where the file system cannot be mapped: its files are nobody's inside
  };
  What what = What::private_mounts;
  std::string first;        // path
  std::string second;       // options, source, link's target
  unsigned mode = 0;        // of what is made; of binds: their attributes (MOUNT_ATTR_..)
  bool of_image = false;    // a failure may be because of the image's file system
  int user_namespace = -1;  // of binds that are mapped: by another namespace's ids than the container's
};

class ChildPlan {
 public:
  // `ids`: whom things are given to. `user_namespace`: a descriptor that maps them, for bind_mapped; it must
  // stay open as long as the plan is used.
  ChildPlan(std::optional<IdRange> ids, int user_namespace) : ids_(ids), user_namespace_(user_namespace) {}
  void add(PlanStep step) { steps_.push_back(std::move(step)); }
  const std::vector<PlanStep>& steps() const { return steps_; }
  // 0 or an error number. Requires: the caller has one thread.
  int carry_out(size_t index) const;
  Error explain(size_t index, int error_number) const;

 private:
  std::vector<PlanStep> steps_;
  std::optional<IdRange> ids_;
  int user_namespace_;
};

// Whether a mount of the file system at `path` can be mapped to those ids; errno says why not. Leaves nothing.
bool can_map(const std::string& path, int user_namespace);

enum class RootKind { tmpfs, overlay, copy };

// Looks at the kinds of what is to be mounted. `identity_namespaces`: by the place of each mount, the user namespace
// that maps its identity; -1, or a list that is too short: it has none.
Result<ChildPlan> make_plan(const ContainerSpec& spec, const Bundle& bundle, const Stage& stage,
                            const Cgroup& cgroup, RootKind kind, std::optional<IdRange> ids,
                            int user_namespace, const std::vector<int>& identity_namespaces);

// Where the layer over an image is.
inline const std::string& layer_directory_of(const ContainerSpec& spec) {
  return spec.layer_directory.empty() ? spec.directory : spec.layer_directory;
}

// Where the runtime keeps what it knows of each container, by the name of its cgroup. One for all of them: the runtime
// keeps the filter of system calls there as well, in the form that the kernel takes, and making it takes a millisecond.
std::string runtime_root();

// Names below that directory, and below a container's own.
inline constexpr const char* kUpperDirectory = "upper";  // the writable layer over an image
inline constexpr const char* kWorkDirectory = "work";
inline constexpr const char* kCopyDirectory = "copy";  // of an image, where overlays are refused

}  // namespace trainyard::containers

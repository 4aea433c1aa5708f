// Makes the OCI bundle of a container as values: config.json from a spec, and the steps that fill
// an empty root before the runtime starts. The paths of the machine that can be mounted are an
// argument.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "containers/container.hpp"
#include "containers/id_range.hpp"

namespace trainyard::containers {

// A path of this machine that a container without an image sees.
struct SystemEntry {
  enum class Kind { directory, file, link };
  std::string path;  // absolute: "/usr", "/etc/passwd"
  Kind kind = Kind::directory;
  std::string target;  // target of a link: "usr/bin"
};

// Returns the allow-list: paths of this machine that such a container may see, if they exist.
// Directories of the root are first, then paths in /etc. It never contains shadow, ssh, sudoers,
// hosts, resolv.conf or keys.
const std::vector<std::string>& system_allow_list();
// Returns the entries of the allow-list that exist on this machine.
std::vector<SystemEntry> system_entries();

// One step of filling an empty root. The steps are carried out in order.
struct RootStep {
  enum class Kind { directory, file, link, bind };
  Kind kind = Kind::directory;
  std::string path;  // relative to the root
  // link: its target; bind: the path on this machine that is mounted here read-only
  std::string target;
  unsigned mode = 0755;
};
std::vector<RootStep> root_steps(const std::vector<SystemEntry>& system);

// Returns each mount, followed by the mounts below its source (from the text of
// /proc/self/mountinfo) as separate mounts, so that each can be bound, or mapped to the container's
// ids, separately. Pure.
std::vector<Mount> with_mounts_below(const std::vector<Mount>& mounts, std::string_view mountinfo);

// The directories that are prepared for the runtime. They are in a tmpfs that is visible only in
// the container's first mount namespace, and that root of the container's user namespace may
// search.
//
//   STAGE/root       the container's root
//   STAGE/image      the image, mapped to the container's ids (only if ids are shifted)
//   STAGE/mount-0 .. spec.mounts that have a source, by their index
//   STAGE/device-0 ..
//   STAGE/sys        a sysfs of the given network namespace
struct Stage {
  std::string path;
  std::string root() const { return path + "/root"; }
  std::string image() const { return path + "/image"; }
  std::string mount(size_t index) const { return path + "/mount-" + std::to_string(index); }
  std::string device(size_t index) const { return path + "/device-" + std::to_string(index); }
  std::string sys() const { return path + "/sys"; }
  std::string runtime() const { return path + "/crun"; }  // the path that lists of processes show
};

struct Bundle {
  Json config;
  std::vector<RootStep> root;  // empty for images
  uint64_t root_bytes = 0;     // size limit of the tmpfs of the root
};

// Returns the mount options that limit a tmpfs: its bytes, and its files, each of which needs
// kernel memory even if it is empty.
std::string tmpfs_limits(uint64_t bytes);

// Checks all members of a spec from which a bundle is made. Errors: invalid, with the name of the
// member.
Result<void> check_container(const ContainerSpec& spec, const std::vector<SystemEntry>& system);

// Makes the bundle. `ids` are the ids of the container's user namespace; unset: it has no user
// namespace and no capabilities. `filter` is the filter of system calls (system_call_filter.hpp).
// Requires: check_container() accepts the spec; the caller has entered spec.network_namespace, if
// it is set.
Bundle make_bundle(const ContainerSpec& spec, const std::vector<SystemEntry>& system,
                   const Stage& stage, const std::optional<IdRange>& ids, const Json& filter);

// Returns the capabilities of the root of a container with a user namespace: "CAP_CHOWN" ..
const std::vector<std::string>& container_capabilities();

}  // namespace trainyard::containers

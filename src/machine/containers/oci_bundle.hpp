// Makes the OCI bundle of a container as text: config.json from a spec, and the content of an empty
// root before the runtime starts. Nothing here touches the machine: its mountable paths are an
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

// A path of this machine's own system that a runtime sees.
struct SystemEntry {
  enum class Kind { directory, file, link };
  std::string path;  // absolute: "/usr", "/etc/passwd"
  Kind kind = Kind::directory;
  std::string target;  // of links: "usr/bin"
};

// The allow-list: paths of this machine that a runtime may see, if they exist. Directories of the
// root first, then of /etc. Never: shadow, ssh, sudoers, hosts, resolv.conf, keys.
const std::vector<std::string>& system_allow_list();
// Entries of the allow-list that this machine has.
std::vector<SystemEntry> system_entries();

// One step of filling an empty root. The steps are carried out in order.
struct RootStep {
  enum class Kind { directory, file, link, bind };
  Kind kind = Kind::directory;
  std::string path;  // relative to the root
  // of links; of binds: the path on this machine that is mounted there, read-only
  std::string target;
  unsigned mode = 0755;
};
std::vector<RootStep> root_steps(const std::vector<SystemEntry>& system);

// Returns each mount, followed by the mounts below its source (by the text of /proc/self/mountinfo)
// as mounts of their own: so each can be bound, or mapped to the container's ids, separately. Pure.
std::vector<Mount> with_mounts_below(const std::vector<Mount>& mounts, std::string_view mountinfo);

// The directories that are prepared for the runtime: a tmpfs that only the container's first mount
// namespace shows, and that root of the container's user namespace may search.
//
//   STAGE/root       the container's root
//   STAGE/image      the image, by the container's ids (shifted ids only)
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
  std::string runtime() const { return path + "/runtime"; }
};

struct Bundle {
  Json config;
  std::vector<RootStep> root;  // empty for images
  uint64_t root_bytes = 0;     // size limit of the root's tmpfs
};

// The options that limit a tmpfs: its bytes, and its files, each of which takes kernel memory even
// when it is empty.
std::string tmpfs_limits(uint64_t bytes);

// Checks everything that a bundle is made of. Errors: invalid, naming the member of the spec.
Result<void> check_container(const ContainerSpec& spec, const std::vector<SystemEntry>& system);

// Makes the bundle. `ids`: of the container's user namespace; none: it has no user namespace and no
// capability. `filter`: of system calls (system_call_filter.hpp). Requires: check_container()
// accepts the spec; the caller has entered spec.network_namespace, if given.
Bundle make_bundle(const ContainerSpec& spec, const std::vector<SystemEntry>& system,
                   const Stage& stage, const std::optional<IdRange>& ids, const Json& filter);

// The capabilities of a container's root ("CAP_CHOWN"), if it has a user namespace.
const std::vector<std::string>& container_capabilities();

}  // namespace trainyard::containers

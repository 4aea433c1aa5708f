// The OCI bundle of a container, as text: config.json from a spec, and what must be laid out in an empty root
// before the runtime starts. Nothing here touches the machine: what is there to bind is an argument.
//
// Threads: pure functions. Errors: invalid, naming the member of the spec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "host/container.hpp"

namespace trainyard::host {

// Something of this machine's own system that a runtime sees.
struct SystemEntry {
  enum class Kind { directory, file, link };
  std::string path;  // absolute: "/usr", "/etc/passwd"
  Kind kind = Kind::directory;
  std::string target;  // of links: "usr/bin"
};

// The allow-list: what of this machine a runtime may see, if it is there. Directories of the root first, then
// of /etc. Never: shadow, ssh, sudoers, hosts, resolv.conf, keys.
const std::vector<std::string>& system_allow_list();
// What of the allow-list this machine has.
std::vector<SystemEntry> system_entries();

// What to lay out in an empty root, in order.
struct RootStep {
  enum class Kind { directory, file, link };
  Kind kind = Kind::directory;
  std::string path;    // relative to the root
  std::string target;  // of links
  unsigned mode = 0755;
};
std::vector<RootStep> root_steps(const std::vector<SystemEntry>& system);

struct Bundle {
  Json config;
  std::vector<RootStep> root;  // empty for images
  uint64_t root_bytes = 0;     // size limit of the root's tmpfs
};
// `root_path`: where the root will be. `architecture`: as uname says ("x86_64").
Result<Bundle> make_bundle(const ContainerSpec& spec, const std::vector<SystemEntry>& system,
                           const std::string& root_path, std::string_view architecture);

// The system call filter, for one architecture. Denied: what mounts, looks into other processes, makes
// namespaces, loads code into the kernel, keeps keys, changes clocks, or opens files behind the mounts' back.
// io_uring is allowed.
Json seccomp_profile(std::string_view architecture);

}  // namespace trainyard::host

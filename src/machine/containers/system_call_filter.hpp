// Makes the filter of system calls that every container has: an allow list. It starts from the
// default profile of containers-common (seccomp.json, which podman and buildah use as well), adds
// nothing, and removes calls that jobs do not need: those that mount, inspect other processes, make
// namespaces, load code into the kernel, store keys, change clocks, open files outside the mounts,
// or submit calls past this filter (io_uring). A call that the profile does not list, such as those
// of later kernels, fails with ENOSYS.
//
// Threads: callable from anywhere. Errors: invalid (not such a profile), denied (the profile is not
// installed).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::containers {

// Makes the filter in the form of the OCI runtime specification, from a profile in the form of
// containers-common. `architecture`: that of uname ("x86_64"). `capabilities`: those of the
// container's root ("CAP_CHOWN"). Pure.
Result<Json> make_system_call_filter(const Json& profile, std::string_view architecture,
                                     const std::vector<std::string>& capabilities);

// Paths of the profile; the first that exists is read: the operator's, the package's.
inline constexpr const char* kProfileFiles[] = {"/etc/containers/seccomp.json",
                                                "/usr/share/containers/seccomp.json"};

// The profile of this machine; read and parsed at the first call of this process.
Result<Json> system_call_profile();

}  // namespace trainyard::containers

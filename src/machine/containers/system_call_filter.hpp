// Makes the filter of system calls of every container, an allow list. It is derived from the
// default profile of containers-common (seccomp.json, which podman and buildah use too). It adds no
// calls, and removes calls that jobs do not need: those that mount, inspect other processes, make
// namespaces, load code into the kernel, store keys, change clocks, open files outside of the
// mounts, or bypass this filter (io_uring). Calls that the profile does not list, such as those of
// later kernels, fail with ENOSYS.
//
// Threads: callable from anywhere. Errors: invalid (not a profile of containers-common), denied
// (the profile is not installed).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::containers {

// Makes the filter in the form of the OCI runtime specification, from a profile in the form of
// containers-common. `architecture` is as in uname ("x86_64"); `capabilities` are the
// capabilities of the container's root ("CAP_CHOWN"). Pure.
Result<Json> make_system_call_filter(const Json& profile, std::string_view architecture,
                                     const std::vector<std::string>& capabilities);

// Paths of the profile, of which the first that exists is read: that of the operator, that of the
// package.
inline constexpr const char* kProfileFiles[] = {"/etc/containers/seccomp.json",
                                                "/usr/share/containers/seccomp.json"};

// Returns the profile of this machine, which is read and parsed at the first call.
Result<Json> system_call_profile();

}  // namespace trainyard::containers

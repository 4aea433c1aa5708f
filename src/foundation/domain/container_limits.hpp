// Defines the resource limits (setrlimit) that jobs may raise for their containers by default.
//
// Threads: constants.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace trainyard::domain {

// RLIMIT_RTPRIO and RLIMIT_NICE are 0, since a container with a higher priority than the processes
// of the machine can block the machine. Locked memory cannot be reclaimed, so its limit is
// systemd's default for services.
inline const std::map<std::string, uint64_t> kContainerLimitsMax = {
    {"rtprio", 0}, {"nice", 0}, {"memlock", uint64_t{8} << 20}};

}  // namespace trainyard::domain

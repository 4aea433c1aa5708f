// Defines texts for containers outside the training contract: the variable with the address of the
// main host, and the prefixes of failure reports.
//
// Threads: constants.
#pragma once

#include <string_view>

namespace trainyard::contract {

// The variable with the address of the main host. The launcher sets it on the other hosts.
inline constexpr std::string_view kMainAddressVariable =
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
// The detail of an error whose message starts with kCannotPull.
enum class StartFault { cannot_pull };
// Prefixes of the failure of a host whose container never ran. They are AWS's texts, because retry
// rules match them.
inline constexpr std::string_view kCannotPull = "CannotPullContainerError: ";
inline constexpr std::string_view kCannotStart = "CannotStartContainerError: ";

}  // namespace trainyard::contract

// Defines the parts of a container's environment outside the training contract: the variable with
// the address of the main host, and the prefixes of failure reports.
//
// Threads: constants.
#pragma once

#include <string_view>

namespace trainyard::contract {

// The variable with the main host's address, on the hosts that follow it. The launcher sets it.
inline constexpr std::string_view kMainAddressVariable =
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
// The detail of an error whose message begins with one of the texts below.
enum class StartFault { cannot_pull };
// How the failure of a host begins whose container never ran: AWS's texts, since retry rules match
// them.
inline constexpr std::string_view kCannotPull = "CannotPullContainerError: ";
inline constexpr std::string_view kCannotStart = "CannotStartContainerError: ";

}  // namespace trainyard::contract

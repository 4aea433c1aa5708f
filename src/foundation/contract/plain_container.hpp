// Names what a container that is not under the training contract meets beside its variables: the address of the host
// that it follows, and how the report of its failure begins.
//
// Threads: constants.
#pragma once

#include <string_view>

namespace trainyard::contract {

// Of the hosts that follow a main host: its address, which the launcher gives.
inline constexpr std::string_view kMainAddressVariable = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
// How the failure of a host begins whose container never ran: AWS's texts, since retry rules match them.
inline constexpr std::string_view kCannotPull = "CannotPullContainerError: ";
inline constexpr std::string_view kCannotStart = "CannotStartContainerError: ";

}  // namespace trainyard::contract

// Runs code in another network namespace. Sockets that are opened there belong to it, and can be
// used from here.
//
// Threads: callable from anywhere; `work` runs on a new thread, which enters the namespace and then
// ends. Threads that `work` starts are in the namespace too. Errors: not_found (no such namespace),
// denied (no right to enter it), those of `work`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::networks {

// `network_namespace` is the path of a namespace file ("/run/netns/x"); "": the current one.
Result<void> in_network_namespace(const std::string& network_namespace,
                                  const std::function<Result<void>()>& work);

// Opens a TCP socket that listens on `address` ("169.254.170.2:80"; IPv4) in the namespace. Port 0:
// any free port. Errors also: conflict (address in use), not_found (no interface there has this
// address).
Result<os::File> listen_in_namespace(const std::string& network_namespace,
                                     const std::string& address);
// Opens a socket for each address, in their order.
Result<std::vector<os::File>> listen_in_namespace(const std::string& network_namespace,
                                                  const std::vector<std::string>& addresses);
// Returns the port of a listening socket.
Result<uint16_t> listening_port(const os::File& listener);

}  // namespace trainyard::networks

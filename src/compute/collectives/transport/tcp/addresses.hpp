// Resolves the names and addresses of ranks, IPv4 and IPv6.
//
// Threads: plain functions; resolving a name may block. Errors: unavailable while a name cannot be
// resolved (yet).
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::collectives {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// Splits the `host` of an endpoint, which may name several hosts separated by commas.
std::vector<std::string> hosts_of(const Endpoint& endpoint);
// Returns the first address of each host. Omits hosts that cannot be resolved now; fails if none
// can.
Result<std::vector<Address>> resolve(const Endpoint& endpoint);
// Formats an endpoint for messages: HOST:PORT, or [HOST]:PORT.
std::string text_of(const Endpoint& endpoint);
// Returns the address at which to listen: the endpoint's, or all addresses of the machine if the
// endpoint names several hosts.
Result<Address> listen_address(const Endpoint& endpoint);

}  // namespace trainyard::collectives

// Names and addresses of ranks, IPv4 and IPv6.
//
// Threads: plain functions; looking a name up may block. Errors: unavailable while a name is not known (yet).
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

// What an endpoint's `host` names: several are separated by commas.
std::vector<std::string> hosts_of(const Endpoint& endpoint);
// The first address of each. At least one; those that are not known now are left out while others are.
Result<std::vector<Address>> resolve(const Endpoint& endpoint);
// For people: HOST:PORT, or [HOST]:PORT.
std::string text_of(const Endpoint& endpoint);
// Where one listens for all that the endpoint names: at it, or at all addresses of the machine when it names several.
Result<Address> place_to_listen(const Endpoint& endpoint);

}  // namespace trainyard::collectives

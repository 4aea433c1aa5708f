// Connects the ranks of a process group over the store that torch passes to each backend.
//
// Each rank writes an identifier of its machine and its addresses, and reads those of the others.
// If all ranks share a machine, they use the loopback address. Otherwise each rank uses the address
// by which the others reach it according to the routes, never according to names of hosts or
// interfaces, and adds its other addresses for hosts on other networks. Then each rank listens,
// writes its endpoint, and joins. Rank 0 makes the group's secret, to which the user's secret is
// appended.
//
// Threads: plain functions; they block. Errors: those of join_over_tcp, and unavailable, which
// names the rank that did not write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::sdk {

// A KeyValueStore reads and writes the keys of one group in torch's store.
struct KeyValueStore {
  std::function<void(const std::string& key, const std::string& value)> write;
  // Waits until the key is written. Errors: unavailable.
  std::function<Result<std::string>(const std::string& key)> read;
};

// A rank's description of its machine, before endpoints are chosen.
struct Presence {
  std::string machine;                 // equal if and only if ranks share the loopback address
  std::vector<std::string> addresses;  // without loopback; the default route's address first
};
std::string encode(const Presence& presence);
Result<Presence> decode_presence(const std::string& text);
Result<Presence> own_presence();

// Returns the addresses at which the others reach `rank`, the likeliest first. `source_towards`
// returns the local address from which the kernel would send to an address; empty without a route.
std::vector<std::string> choose_addresses(
    const std::vector<Presence>& all, size_t rank,
    const std::function<std::string(const std::string&)>& source_towards);

struct RendezvousOptions {
  int rank = 0;
  int size = 1;
  Duration join_deadline = 30min;
  Duration peer_timeout = 30min;
  std::string address;  // set by the user; empty: chosen by the routes
  std::string secret;   // the user's part of the group's secret; needed for `encrypt`
  bool encrypt = false;
  int sockets_per_peer = 1;
  std::function<bool()> cancelled;
  collectives::GroupOptions group;
};
Result<std::unique_ptr<collectives::Group>> rendezvous(const KeyValueStore& store,
                                                       RendezvousOptions options);

}  // namespace trainyard::sdk

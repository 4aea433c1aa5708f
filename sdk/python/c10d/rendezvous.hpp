// How the ranks of a process group find each other: over the store that torch hands to every
// backend.
//
// Each rank writes down the machine it is on and its addresses, then reads what the others wrote.
// On one machine all take the loopback address; else each takes the address from which the others
// are reached, by the routes, never by the names of hosts or interfaces, and names its other
// addresses after it, for hosts on other networks. Then each listens, writes down where, and they
// join. Rank 0 makes the group's secret; the user's own is part of it.
//
// Threads: plain functions; they block. Errors: of the kinds that join_over_tcp names, and
// unavailable, which names the rank that did not write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::sdk {

// What torch's store can do, of one group's own part of it.
struct KeyValueStore {
  std::function<void(const std::string& key, const std::string& value)> write;
  // Waits for it. Errors: unavailable.
  std::function<Result<std::string>(const std::string& key)> read;
};

// What a rank says of itself before anyone has an address.
struct Presence {
  std::string machine;                 // equal exactly where the loopback address is the same one
  std::vector<std::string> addresses;  // not loopback; the one that reaches the world first
};
std::string encode(const Presence& presence);
Result<Presence> decode_presence(const std::string& text);
Result<Presence> own_presence();

// The addresses at which `rank` is reached by all others, the likeliest first. `source_towards`
// asks the kernel from which of our addresses it would send to one; empty when there is no route.
std::vector<std::string> choose_addresses(
    const std::vector<Presence>& all, size_t rank,
    const std::function<std::string(const std::string&)>& source_towards);

struct RendezvousOptions {
  int rank = 0;
  int size = 1;
  Duration join_deadline = 30min;
  Duration silence_max = 30min;
  std::string address;  // the user's word for it; empty: found out
  std::string secret;   // the user's own part of the group's; needed where `encrypt` is asked for
  bool encrypt = false;
  int sockets_per_peer = 1;
  std::function<bool()> cancelled;
  collectives::GroupOptions group;
};
Result<std::unique_ptr<collectives::Group>> rendezvous(const KeyValueStore& store,
                                                       RendezvousOptions options);

}  // namespace trainyard::sdk

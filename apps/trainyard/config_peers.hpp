// Reads the tables [[peer]] of the configuration file: servers that may act on behalf of principals of this one.
//
// Threads: pure. Errors: invalid, naming the key.
#pragma once

#include <vector>

#include "operations/services.hpp"
#include "trainyard/config_table.hpp"

namespace trainyard::apps {

inline Result<void> read_peers(Table& root, std::vector<api::Peer>& peers) {
  return root.each("peer", [&](Table table) -> Result<void> {
    api::Peer peer;
    TRY(table.read("access_key_id", peer.access_key_id));
    TRY(table.read("users", peer.users));
    TRY(table.read("roles", peer.roles));
    TRY(table.nothing_else());
    if (peer.access_key_id.empty())
      return invalid(table.name("access_key_id") +
                     " is missing: the key of a user of this server, which the other one signs with");
    peers.push_back(std::move(peer));
    return {};
  });
}

}  // namespace trainyard::apps

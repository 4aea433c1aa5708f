// What of private networks (network.hpp) is the firewall's, for network.cpp only; and the way to where bridges are.
//
// Threads: callable from anywhere. Errors: denied (nft is missing), internal (its words).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "containers/rootless_sandbox.hpp"
#include "networks/network_namespace.hpp"

namespace trainyard::networks {

// Where the bridges are: here, or in the namespace that an ordinary user's enclosure has for them.
template <class T>
Result<T> among_bridges(const std::function<Result<T>()>& work) {
  const std::string there = containers::network_of_bridges();
  if (there.empty()) return work();
  std::optional<Result<T>> answer;
  TRY(in_network_namespace(there, [&]() -> Result<void> {
    answer = work();
    return ok();
  }));
  return std::move(*answer);
}

// Both in the namespace of the calling thread.
Result<void> run_nft(const std::string& text);
Result<void> remove_firewall_tables_here(const std::vector<std::string>& names);

}  // namespace trainyard::networks

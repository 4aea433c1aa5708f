// Applies the firewall of private networks (network.hpp), and runs code in the namespace of the
// bridges. Private to network.cpp.
//
// Threads: callable from anywhere. Errors: denied (nft is missing), internal (message of nft).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "containers/rootless_sandbox.hpp"
#include "networks/network_namespace.hpp"

namespace trainyard::networks {

// Runs `work` in the namespace of the bridges: the current one, or that of an ordinary user's
// rootless sandbox.
template <class T>
Result<T> in_network_of_bridges(const std::function<Result<T>()>& work) {
  const std::string there = containers::network_of_bridges();
  if (there.empty()) return work();
  std::optional<Result<T>> answer;
  TRY(in_network_namespace(there, [&]() -> Result<void> {
    answer = work();
    return ok();
  }));
  return std::move(*answer);
}

// All apply to the namespace of the calling thread.
Result<void> run_nft(const std::string& text);

// Makes a table, or replaces it in one transaction. `definition` is its `table inet NAME { .. }`.
Result<void> set_table(const std::string& name, const std::string& definition);

Result<void> remove_firewall_tables_here(const std::vector<std::string>& names);

}  // namespace trainyard::networks

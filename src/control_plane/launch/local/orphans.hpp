// Finds and removes what bears a server's mark on this machine and belongs to no attempt of it:
// interfaces, firewall tables, namespaces. Private to this folder.
//
// Threads: plain functions. Errors: those of networks and files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/local/local_system.hpp"

namespace trainyard::launch {

// Below run_directory/MARK: names the data directory of the server whose mark it is.
inline constexpr const char* kOwnerFile = "data-directory";

// Names on this machine that belong to one server's attempts.
struct InUse {
  std::set<std::string> links, tables, namespace_files;
  void add(const networks::PrivateNetwork& network, const networks::DirectFirewall& firewall);
};

// Removes links, tables and namespaces that bear `mark` and are not in use. Returns what was
// removed.
Result<std::vector<std::string>> remove_unused(const LocalParts& parts,
                                               const std::string& run_directory,
                                               const std::string& mark, const InUse& used);

}  // namespace trainyard::launch

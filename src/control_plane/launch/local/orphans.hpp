// Finds and removes interfaces, firewall tables and namespaces with a server's mark that belong to
// none of its attempts. Private to this folder.
//
// Threads: plain functions. Errors: those of networks and files.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/local/local_system.hpp"

namespace trainyard::launch {

// The file in run_directory/MARK that has the data directory of the server with that mark.
inline constexpr const char* kOwnerFile = "data-directory";

// The names of network objects that belong to one server's attempts.
struct InUse {
  std::set<std::string> links, tables, namespace_files;
  void add(const networks::PrivateNetwork& network, const networks::DirectFirewall& firewall);
};

// Removes links, tables and namespaces that have `mark` and are not in use. Returns their names.
Result<std::vector<std::string>> remove_unused(const LocalParts& parts,
                                               const std::string& run_directory,
                                               const std::string& mark, const InUse& used);

}  // namespace trainyard::launch

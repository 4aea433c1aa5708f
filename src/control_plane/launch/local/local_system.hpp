// LocalSystem is the local launcher's interface to the networks, firewalls, containers and mounts
// of its machine. Tests and sim/ implement it to inject faults, or to end the launcher, between any
// two steps.
//
// Threads: callable from anywhere. Errors: those of the functions of networks, containers and os
// that have the same names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "networks/network.hpp"
#include "os/files.hpp"
#include "os/processes.hpp"

namespace trainyard::launch {

class LocalSystem {
 public:
  virtual ~LocalSystem() = default;

  // Returns the path with all links resolved.
  virtual Result<std::string> resolve(const std::string& path) = 0;

  // Keeps other servers of this machine from choosing networks, until the result is destroyed.
  // Errors: conflict, if another server holds the lock for too long.
  virtual Result<std::shared_ptr<void>> lock_networks(const std::string& run_directory) = 0;
  virtual Result<std::vector<networks::Subnet>> networks_in_use() = 0;
  virtual Result<std::vector<os::File>> make_network(const networks::PrivateNetwork& network) = 0;
  virtual Result<std::vector<os::File>> replace_hosts(const networks::PrivateNetwork& former,
                                                      const networks::PrivateNetwork& next) = 0;
  virtual Result<void> remove_networks(const std::vector<networks::PrivateNetwork>& networks) = 0;
  virtual std::vector<std::string> links_named(std::string_view prefix) = 0;
  virtual Result<void> remove_links(const std::vector<std::string>& names) = 0;
  virtual Result<void> remove_namespace_file(const std::string& path) = 0;

  // Returns true if this machine has the program nft.
  virtual bool has_firewall() = 0;
  virtual Result<void> make_firewall(const networks::DirectFirewall& firewall) = 0;
  virtual bool has_firewall_table(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix) = 0;
  virtual Result<void> remove_firewall_tables(const std::vector<std::string>& names) = 0;
  virtual Result<void> stop_foreign_forwarding() = 0;
  // Returns the name servers that this machine uses.
  virtual std::vector<networks::EgressService> name_servers() = 0;

  virtual bool in_rootless_sandbox() = 0;
  virtual Result<void> remove_containers_in(const std::string& directory) = 0;
  virtual Result<std::vector<std::string>> sweep_containers() = 0;
  virtual Result<void> unmount_below(const std::string& directory) = 0;
};

// The launcher's dependencies. Lifetime: all outlive the launcher.
struct LocalParts {
  Files& files;
  os::Processes& processes;
  LocalSystem& system;
  // True: the launcher removes networks on its own threads. False: work() of stepped_launcher.hpp
  // removes them.
  bool own_threads = true;
};

// Returns the parts of this machine, which live as long as the program.
LocalParts machine_parts();

}  // namespace trainyard::launch

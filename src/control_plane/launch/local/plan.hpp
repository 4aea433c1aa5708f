// Chooses the names and addresses of a gang's network on this machine.
//
// Names contain a short mark of the server's data directory, so that two servers on one machine do
// not collide, and the position of the address in the pool, so that two gangs do not:
//
//   bridge     ty3fa91c0010          ty + mark + first address of the gang, counted from the pool's
//                                    (hex)
//   links      tv3fa91c0012          tv + mark + the host's address, counted likewise
//   table      trainyard_3fa91c_0010
//   namespace  /run/trainyard/3fa91c/j17a1-0
//
// A gang of one host that is not isolated has no bridge; all such gangs share one table:
//
//   link       tys3fa91c0010         tys + mark + first address of the gang
//   table      trainyard_3fa91c_one
//
// Threads: pure functions. Errors: exhausted, when the pool has no free subnet.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "domain/job.hpp"
#include "launch/launcher.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {

// Returns three bytes of the path's hash as six hexadecimal digits.
std::string server_mark(std::string_view data_directory);

// Returns the smallest free subnet for this number of hosts (and the network's, the bridge's and
// the broadcast address; twice as many if it is encrypted), at or after `start`, else from the
// pool's beginning.
Result<networks::Subnet> choose_subnet(const networks::Subnet& pool, size_t hosts,
                                       const std::vector<networks::Subnet>& taken,
                                       networks::Address start, bool encrypted = false);

struct NetworkRequest {
  domain::AttemptId attempt;
  size_t hosts = 1;
  bool isolated = false;
  bool encrypted = false;
  std::string mark;
  std::string namespace_directory;  // "/run/trainyard/3fa91c"
  std::string comment;
  std::vector<networks::Address> relays;
  bool direct = false;  // without a bridge. Requires: one host, not isolated
};
// Returns the size of the largest gang for which choose_subnet() finds a subnet in an empty pool.
int64_t gang_hosts_max(const networks::Subnet& pool, bool encrypted);

networks::DirectFirewall direct_firewall(const std::string& mark, const networks::Subnet& pool);
// Adds the machine's own networks to the egress: those among `in_use` that are neither jobs'
// networks nor loopback.
networks::Egress with_own_networks(networks::Egress egress,
                                   const std::vector<networks::Subnet>& in_use,
                                   const networks::Subnet& pool);
// Returns the rules of a job's role, by its ARN or its name (domain/role.hpp); nullptr: none.
const std::vector<networks::EgressRule>* rules_of_role(
    const std::map<std::string, std::vector<networks::EgressRule>>& of_roles,
    const std::string& role_arn);
networks::PrivateNetwork plan_network(const NetworkRequest& request, const networks::Subnet& pool,
                                      const networks::Subnet& subnet);

// Returns the agent's argument for the underlay of an encrypted network: "10.201.0.1/29", its
// gateway and the prefix length of each half of the subnet. A host's underlay address is its
// address minus the size of a half.
std::string underlay_text(const networks::PrivateNetwork& network);

// Returns the start of every host's /etc/hosts: loopback, and all members by name.
std::string host_table(const networks::PrivateNetwork& network);

// One member's request for GPUs of its machine.
struct GpuRequest {
  std::vector<std::string> devices;  // the GPUs of the machine on which it is placed
  int64_t gpus = 0;
};
// Assigns whole devices to each request, in the machine's order: none twice, and none of `taken`. A
// machine without devices assigns none. Errors: exhausted.
Result<std::vector<std::vector<std::string>>> choose_gpus(const std::vector<GpuRequest>& requests,
                                                          const std::set<std::string>& taken);

// Removes GPUs that could not be cleared from the machines. `cards` are the device files of
// machines that configure none.
std::vector<Machine> without_gpus(std::vector<Machine> machines,
                                  const std::vector<std::string>& cards,
                                  const std::set<std::string>& uncleared);

// The launcher's record of an attempt, which is written before anything else is made.
struct Record {
  domain::AttemptId attempt;
  std::string token;
  networks::PrivateNetwork network;
  std::vector<std::vector<std::string>> gpus = {};  // by host: its device files
};
Json to_json(const Record& record);
Result<Record> record_from_json(const Json& json);

}  // namespace trainyard::launch

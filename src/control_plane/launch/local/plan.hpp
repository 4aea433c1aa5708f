// Chooses the names and addresses of a gang's network on this machine.
//
// Names carry a short mark of the server's data directory, so that two servers on one machine do
// not collide, and the position of the address in the pool, so that two gangs do not:
//
//   bridge     ty3fa91c0010          ty + mark + first address of the gang, counted from the pool's
//                                    (hex)
//   links      tv3fa91c0012          tv + mark + the host's address, counted likewise
//   table      trainyard_3fa91c_0010
//   namespace  /run/trainyard/3fa91c/j17a1-0
//
// A gang of one host that is not isolated has no bridge; one table serves all of those:
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

// Three bytes of the path's hash as six digits.
std::string server_mark(std::string_view data_directory);

// The smallest free subnet for that many hosts (and the network's, the bridge's and the broadcast
// address; if it is encrypted, all of that twice), at or after `start`, else from the pool's
// beginning.
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
// The largest gang that choose_subnet() can find a network for in an empty pool.
int64_t gang_hosts_max(const networks::Subnet& pool, bool encrypted);

networks::DirectFirewall direct_firewall(const std::string& mark, const networks::Subnet& pool);
// Adds the machine's own networks among `in_use`: neither jobs' nor its loopback.
networks::Egress with_own_networks(networks::Egress egress,
                                   const std::vector<networks::Subnet>& in_use,
                                   const networks::Subnet& pool);
// The rules of a job's role, by its ARN or its name (domain/role.hpp); nullptr: it has none of its
// own.
const std::vector<networks::EgressRule>* rules_of_role(
    const std::map<std::string, std::vector<networks::EgressRule>>& of_roles,
    const std::string& role_arn);
networks::PrivateNetwork plan_network(const NetworkRequest& request, const networks::Subnet& pool,
                                      const networks::Subnet& subnet);

// Describes to an agent what lies below an encrypted network: "10.201.0.1/29", the gateway, and how
// many bits the addresses of a half share. A host's address there is its own less the size of a
// half.
std::string underlay_text(const networks::PrivateNetwork& network);

// The start of every host's /etc/hosts: loopback, and all members by name.
std::string host_table(const networks::PrivateNetwork& network);

// One member's request for its machine's GPUs, with those that exist and are assigned.
struct GpuRequest {
  std::vector<std::string> devices;  // of the machine that it is placed on
  int64_t gpus = 0;
};
// Assigns devices to each: whole ones, no two alike, none of `taken`; in the machine's order. A
// machine without devices assigns none. Errors: exhausted.
Result<std::vector<std::vector<std::string>>> choose_gpus(const std::vector<GpuRequest>& requests,
                                                          const std::set<std::string>& taken);

// Removes the GPUs that could not be cleared from the machines. `cards`: the device files of
// machines that name none.
std::vector<Machine> without_gpus(std::vector<Machine> machines,
                                  const std::vector<std::string>& cards,
                                  const std::set<std::string>& uncleared);

// The launcher's record of an attempt, which is written before anything is made.
struct Record {
  domain::AttemptId attempt;
  std::string token;
  networks::PrivateNetwork network;
  std::vector<std::vector<std::string>> gpus = {};  // of each host: its device files
};
Json to_json(const Record& record);
Result<Record> record_from_json(const Json& json);

}  // namespace trainyard::launch

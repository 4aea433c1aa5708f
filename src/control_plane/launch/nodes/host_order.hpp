// HostOrder is the server's order to the program on a node that runs one host of a gang
// (host_run.hpp): the agent's order, and the network that the host needs. It travels in the job's
// script and arrives at the program's standard input; it holds secrets.
//
// Threads: pure. Errors: invalid.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launch/local/plan.hpp"

namespace trainyard::launch {

// The orders of the largest jobs have some hundred kilobytes.
inline constexpr size_t kHostOrderBytesMax = 8 << 20;

struct HostOrder {
  // The attempt, and the part of its network on this node: its hosts here, its own gateway.
  // Namespace files are relative to the directory of the mark.
  Record record;
  std::string mark;
  size_t member = 0;  // of record.network.hosts: the one to run
  domain::HostIndex host = 0;
  std::string node_directory;  // of all nodes; each has its own below
  networks::Egress egress;
  bool names_by_machine = true;  // the node's own name servers may be reached
  // Addresses or names of the gang's other nodes; none: all its hosts are on one.
  std::string own_address;
  std::vector<std::string> peers;
  std::string host_table;
  std::map<std::string, std::string> environment;  // of the agent
  int64_t gpus = 0;
  std::string order;  // bytes of the order file
  // idle_max: the time that the agent waits for another attempt after this one; 0: it does not.
  // time_limit: that of its allocation, from the start of the allocation.
  Duration idle_max{}, time_limit{};
  uint32_t served = 0;  // attempts before this one, by the allocation
  // The Unix account as which the host runs, without root's rights; "": as root.
  std::string user;
  uint32_t user_id = 0;
  // Where the hosts of the gang take encrypted datagrams on their nodes, by index: "NODE:PORT".
  // Empty: the nodes are joined by VXLAN, or there is one.
  std::vector<std::string> endpoints;
};

// True if the next host, alone on its node, can have the network of the previous one, with a
// namespace of its own: they differ in nothing that bridge and firewall depend on.
bool has_same_network(const HostOrder& former, const HostOrder& next);

std::string to_text(const HostOrder& order);  // one line
Result<HostOrder> read_host_order(std::string_view text);

}  // namespace trainyard::launch

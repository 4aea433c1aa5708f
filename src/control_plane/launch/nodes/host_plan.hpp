// Plans the orders of a gang's hosts for nodes that a scheduler of machines gives to it: what each
// host's program gets (host_order.hpp), and the network that joins them.
//
//   network   one subnet for the gang. Each node has a bridge with a gateway of its own, and joins
//             the others by VXLAN (host_run.hpp).
//             Or by encrypted datagrams to ports of the nodes, which needs no rights on them: then
//             each node has a network of its own (networks/datagram_relay.hpp).
//   addresses 10.201.0.1 gateway of the first node, .2 .. one for each host, then one gateway for
//             each further node
//
// Threads: pure. Errors: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/launcher.hpp"
#include "launch/nodes/host_order.hpp"
#include "networks/egress.hpp"
#include "networks/subnet.hpp"

namespace trainyard::launch {

struct NodeSettings {
  std::string mark;  // of the server, derived from its key
  std::string node_directory = "/var/lib/trainyard-node";
  networks::Subnet pool;
  networks::Egress egress;
  bool names_by_machine = true;
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;
  std::map<std::string, std::string> agent_environment;
};

// The hosts of a gang on one node.
struct NodeHosts {
  std::string address;  // of the node, for the gang's other nodes: an address, or a name
  std::vector<domain::HostIndex> hosts;
};

// The order of each host, by its index. `name`: of the gang, for people. `ports`: for encrypted
// datagrams, one of its node for each host; empty: by VXLAN.
// Requires: each host is on one node; the subnet has an address for each host, and for each node
// but the first; with ports, it is one of choose_subnet() for an encrypted network.
std::vector<HostOrder> plan_host_orders(const NodeSettings& settings, const Gang& gang,
                                        const std::string& name,
                                        const std::vector<NodeHosts>& nodes,
                                        const networks::Subnet& subnet,
                                        const std::vector<uint16_t>& ports = {});

}  // namespace trainyard::launch

// Plans the orders (host_order.hpp) of a gang's hosts for nodes of Slurm or Kubernetes, and the
// network that joins them.
//
//   network   one subnet for the gang. Each node has a bridge with its own gateway, and is joined
//             to the others by VXLAN (host_run.hpp), through which the hosts of an encrypted gang
//             have tunnels (networks/tunnel.hpp); or by encrypted datagrams to ports of nodes,
//             which needs no rights on them: then each node has its own network
//             (networks/datagram_relay.hpp).
//   addresses 10.201.0.1 is the gateway of the first node; .2 and the next ones are the hosts',
//             then follow the gateways of further nodes
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
  std::string mark;  // identifies the server; derived from its key
  std::string node_directory = "/var/lib/trainyard-node";
  networks::Subnet pool;
  networks::Egress egress;
  bool names_by_machine = true;
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;
  std::map<std::string, std::string> agent_environment;
};

// The hosts of a gang on one node.
struct NodeHosts {
  std::string address;  // where the gang's other nodes reach it: an address, or a name
  std::vector<domain::HostIndex> hosts;
};

// Returns true if the traffic between the gang's hosts must be encrypted.
bool is_encrypted(const Gang& gang);

// Returns the order of each host, by its index. `name`: the gang's, for display. `ports`: for each
// host a port of its node for encrypted datagrams; empty: VXLAN is used. Requires: each host is on
// one node; the subnet has an address for each host, and for each node except the first; with
// ports, or if the gang is encrypted, choose_subnet() chose it for an encrypted network.
std::vector<HostOrder> plan_host_orders(const NodeSettings& settings, const Gang& gang,
                                        const std::string& name,
                                        const std::vector<NodeHosts>& nodes,
                                        const networks::Subnet& subnet,
                                        const std::vector<uint16_t>& ports = {});

}  // namespace trainyard::launch

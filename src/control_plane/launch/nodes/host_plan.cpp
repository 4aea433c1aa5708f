#include "launch/nodes/host_plan.hpp"

#include "launch/local/local.hpp"
#include "launch/local/plan.hpp"

namespace trainyard::launch {
namespace {

// Returns the network of the gang with all its hosts, as if they were on one machine.
networks::PrivateNetwork whole_network(const NodeSettings& settings, const Gang& gang,
                                       const std::string& name, const networks::Subnet& subnet,
                                       bool encrypted) {
  NetworkRequest request;
  request.attempt = gang.attempt;
  request.hosts = gang.members.size();
  request.isolated = gang.network_isolation;
  request.encrypted = encrypted;
  request.mark = settings.mark;
  request.comment = "trainyard " + name;
  request.relays = {*networks::parse_address(kRelayAddress)};
  auto network = plan_network(request, settings.pool, subnet);
  for (domain::HostIndex host = 0; host < gang.members.size(); ++host)
    network.hosts[host].namespace_file = gang.attempt.text() + "-" + std::to_string(host);
  return network;
}

// Returns the parts that the orders of all hosts share.
HostOrder common_order(const NodeSettings& settings, const Gang& gang) {
  HostOrder order;
  order.mark = settings.mark;
  order.node_directory = settings.node_directory;
  order.egress = settings.egress;
  order.names_by_machine = settings.names_by_machine;
  order.environment = settings.agent_environment;
  if (const auto* rules = rules_of_role(settings.egress_of_roles, gang.role_arn))
    order.egress.rules.insert(order.egress.rules.begin(), rules->begin(), rules->end());
  order.record.attempt = gang.attempt;
  return order;
}

// Returns the parts that the orders of a node's hosts share.
HostOrder order_of_node(const HostOrder& common, const Gang& gang,
                        const std::vector<NodeHosts>& nodes, size_t k,
                        const networks::PrivateNetwork& network) {
  HostOrder order = common;
  order.host_table = host_table(network);
  order.record.network = network;
  const bool is_joined = order.endpoints.empty();
  if (k > 0 && is_joined)
    order.record.network.gateway =
        networks::Address(network.subnet.base + 1 + gang.members.size() + k);
  order.record.network.hosts.clear();
  for (const auto host : nodes[k].hosts) order.record.network.hosts.push_back(network.hosts[host]);
  order.own_address = nodes[k].address;
  for (size_t other = 0; other < nodes.size(); ++other)
    if (other != k && is_joined) order.peers.push_back(nodes[other].address);
  return order;
}

}  // namespace

bool is_encrypted(const Gang& gang) { return gang.encrypt_traffic && gang.members.size() > 1; }

std::vector<HostOrder> plan_host_orders(const NodeSettings& settings, const Gang& gang,
                                        const std::string& name,
                                        const std::vector<NodeHosts>& nodes,
                                        const networks::Subnet& subnet,
                                        const std::vector<uint16_t>& ports) {
  const bool encrypted = !ports.empty() || is_encrypted(gang);
  const auto network = whole_network(settings, gang, name, subnet, encrypted);
  HostOrder common = common_order(settings, gang);
  common.endpoints.resize(ports.size());
  for (const NodeHosts& node : nodes)
    for (const auto host : node.hosts)
      if (!ports.empty()) common.endpoints[host] = node.address + ":" + std::to_string(ports[host]);
  std::vector<HostOrder> orders(gang.members.size());
  for (size_t k = 0; k < nodes.size(); ++k) {
    const HostOrder of_node = order_of_node(common, gang, nodes, k, network);
    for (size_t i = 0; i < nodes[k].hosts.size(); ++i) {
      const auto host = nodes[k].hosts[i];
      HostOrder& order = orders[host];
      order = of_node;
      order.member = i;
      order.host = host;
      order.gpus = gang.members[host].share.gpus;
      order.order = gang.members[host].order;
    }
  }
  return orders;
}

}  // namespace trainyard::launch

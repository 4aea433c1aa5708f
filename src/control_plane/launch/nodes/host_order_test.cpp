#include "launch/nodes/host_order.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace trainyard::launch {
namespace {

HostOrder order_of(uint64_t job) {
  HostOrder order;
  order.record.attempt = {job, 1};
  order.record.token = "token" + std::to_string(job);
  networks::PrivateNetwork& network = order.record.network;
  network.bridge = "ty3fa91c0010";
  network.table = "trainyard_3fa91c_0010";
  network.subnet = *networks::parse_subnet("10.201.0.16/29");
  network.gateway = network.subnet.base + 1;
  network.pool = *networks::parse_subnet("10.201.0.0/16");
  network.comment = "trainyard " + order.record.attempt.text();
  network.hosts = {{"tv3fa91c0012", order.record.attempt.text() + "-0", network.gateway + 1}};
  order.mark = "3fa91c";
  order.node_directory = "/var/lib/nodes";
  return order;
}

TEST(HostOrder, HasTheSameNetworkWithinAnAllocation) {
  EXPECT_TRUE(has_same_network(order_of(1), order_of(2)));
}

TEST(HostOrder, HasAnotherNetworkWithOtherSettings) {
  const std::vector<std::pair<const char*, std::function<void(HostOrder&)>>> changes = {
      {"egress",
       [](HostOrder& order) {
         order.egress.rules.push_back({*networks::parse_subnet("192.0.2.0/24"), true});
       }},
      {"name servers", [](HostOrder& order) { order.names_by_machine = false; }},
      {"isolation", [](HostOrder& order) { order.record.network.isolated = true; }},
      {"subnet", [](HostOrder& order) { order.record.network.subnet.base += 8; }},
      {"pool", [](HostOrder& order) { order.record.network.pool.prefix = 15; }},
      {"relays", [](HostOrder& order) { order.record.network.relays.push_back(1); }},
      {"address", [](HostOrder& order) { ++order.record.network.hosts[0].address; }},
      {"link", [](HostOrder& order) { order.record.network.hosts[0].link += "x"; }},
      {"server", [](HostOrder& order) { order.mark = "000000"; }},
      {"directory", [](HostOrder& order) { order.node_directory = "/other"; }},
      {"other nodes", [](HostOrder& order) { order.peers.push_back("n2"); }},
      {"a second host",
       [](HostOrder& order) {
         order.record.network.hosts.push_back(order.record.network.hosts[0]);
       }},
  };
  for (const auto& [what, change] : changes) {
    HostOrder next = order_of(2);
    change(next);
    EXPECT_FALSE(has_same_network(order_of(1), next)) << what;
    EXPECT_FALSE(has_same_network(next, order_of(1))) << what;
  }
}

}  // namespace
}  // namespace trainyard::launch

#include "launch/nodes/host_order.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/json.hpp"

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

std::vector<HostOrder> orders_of_gang(size_t hosts) {
  std::vector<HostOrder> orders;
  std::string table;
  for (size_t i = 0; i < hosts; ++i)
    table += "10.201.0." + std::to_string(i) + " algo-" + std::to_string(i + 1) + "\n";
  for (size_t i = 0; i < hosts; ++i) {
    HostOrder order = order_of(1);
    order.host = domain::HostIndex(i);
    order.own_address = "node-" + std::to_string(i);
    for (size_t peer = 0; peer < hosts; ++peer)
      if (peer != i) order.peers.push_back("node-" + std::to_string(peer));
    order.host_table = table;
    order.order = dump(Json{{"host", i}, {"token", "secret"}}, 2) + "\n";
    orders.push_back(order);
  }
  return orders;
}

void expect_joined(const std::vector<HostOrder>& orders) {
  const SplitOrders split = split_orders(orders);
  ASSERT_EQ(split.own.size(), orders.size());
  for (size_t i = 0; i < orders.size(); ++i) {
    const auto joined = join_order(split.shared, split.own[i]);
    ASSERT_TRUE(joined) << joined.error().message;
    EXPECT_EQ(to_text(*joined), to_text(orders[i]));
  }
}

TEST(SplitOrders, AreJoinedToTheSameOrders) {
  expect_joined({});
  expect_joined(orders_of_gang(1));
  expect_joined(orders_of_gang(3));
}

TEST(SplitOrders, AreJoinedToTheSameOrdersWhereTheyShareLess) {
  auto orders = orders_of_gang(3);
  orders[1].peers = {"node-2", "node-0"};
  orders[2].order = "not JSON";
  orders[0].environment["ONLY"] = "here";
  expect_joined(orders);
}

TEST(SplitOrders, ShareMembersOfObjects) {
  auto orders = orders_of_gang(2);
  const std::string value(1000, 'x');
  for (HostOrder& order : orders) {
    const Json environment = {{"HOST", order.host}, {"LARGE", value}, {"NONE", Json::object()}};
    order.order = dump(Json{{"environment", environment}}, 2) + "\n";
    order.environment = {{"HOST", std::to_string(order.host)}, {"LARGE", value}};
  }
  expect_joined(orders);
  for (const std::string& own : split_orders(orders).own) EXPECT_LT(own.size(), value.size());
}

TEST(SplitOrders, DoNotGrowWithTheSquareOfTheHosts) {
  const auto bytes_of = [](const SplitOrders& split) {
    size_t bytes = split.shared.size();
    for (const auto& own : split.own) bytes += own.size();
    return bytes;
  };
  const size_t hundred = bytes_of(split_orders(orders_of_gang(100)));
  EXPECT_LT(bytes_of(split_orders(orders_of_gang(1000))), 11 * hundred);
}

TEST(JoinOrder, RejectsInvalidParts) {
  const SplitOrders split = split_orders(orders_of_gang(2));
  for (const char* bad : {"", "[]", "{}", R"({"members":1})", R"({"members":{}})",
                          R"({"members":{},"agent_members":[]})"}) {
    EXPECT_FALSE(join_order(bad, split.own[0])) << bad;
    EXPECT_FALSE(join_order(split.shared, bad)) << bad;
  }
  Json shared = *parse_json(split.shared);
  shared["nodes"] = 1;
  EXPECT_FALSE(join_order(dump(shared), split.own[0]));
}

}  // namespace
}  // namespace trainyard::launch

#include "launch/nodes/user_hosts.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

HostOrder user_order(domain::HostIndex host, int64_t gpus = 0) {
  HostOrder order;
  order.mark = "3fa91c";
  order.record.attempt = {17, 1};
  order.record.network.hosts.resize(1);
  order.record.network.hosts.front().namespace_file = "j17a1-" + std::to_string(host);
  order.node_directory = "/var/tmp/trainyard-node-1001";
  order.host = host;
  order.gpus = gpus;
  order.user = "alice";
  order.user_id = 1001;
  return order;
}

TEST(UserHosts, AreReadFromOneLineEach) {
  const auto orders =
      read_host_orders(to_text(user_order(0)) + "\n" + to_text(user_order(2)) + "\n");
  ASSERT_TRUE(orders) << orders.error().message;
  ASSERT_EQ(orders->size(), 2u);
  EXPECT_EQ(orders->at(1).host, 2u);
  EXPECT_EQ(orders->at(1).user, "alice");
  EXPECT_EQ(orders->at(1).user_id, 1001u);
}

TEST(UserHosts, AreOfOneAccount) {
  EXPECT_EQ(read_host_orders("\n").error().kind, Kind::invalid);
  HostOrder of_root = user_order(1);
  of_root.user_id = 0;
  HostOrder elsewhere = user_order(1);
  elsewhere.node_directory = "/var/tmp/trainyard-node-1002";
  for (const HostOrder& other : {of_root, elsewhere})
    EXPECT_FALSE(read_host_orders(to_text(user_order(0)) + "\n" + to_text(other)));
  EXPECT_FALSE(read_host_orders(to_text(user_order(0)) + "\n{}"));
}

TEST(UserHosts, ShareTheGpusThatSlurmGives) {
  const std::vector<HostOrder> orders = {user_order(0, 2), user_order(1), user_order(2, 1)};
  const auto parts = split_gpus("0,4-5", orders);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(*parts, (std::vector<std::string>{"0,4", "", "5"}));
  EXPECT_EQ(split_gpus("0-1", orders).error().kind, Kind::invalid);
  EXPECT_EQ(*split_gpus("", {user_order(0)}), std::vector<std::string>{""});
}

TEST(UserHosts, DoNotRunAsAnotherUser) {
  NodeFacts node;
  node.name = "n1";
  node.job_number = "7";
  const auto refused = run_user_hosts({user_order(0)}, node, [](const HostEnd&) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
  HostOrder nobodys = user_order(0);
  nobodys.user.clear();
  EXPECT_EQ(run_user_hosts({nobodys}, node, [](const HostEnd&) {}).error().kind, Kind::invalid);
  node.job_number = "../7";
  EXPECT_EQ(run_user_hosts({user_order(0)}, node, [](const HostEnd&) {}).error().kind,
            Kind::invalid);
}

}  // namespace
}  // namespace trainyard::launch

#include "networks/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::networks {
namespace {

TEST(Subnet, ParsesAndFormats) {
  const auto subnet = parse_subnet("10.201.0.0/16");
  ASSERT_TRUE(subnet);
  EXPECT_EQ(subnet->text(), "10.201.0.0/16");
  EXPECT_EQ(subnet->size(), 65536u);
  EXPECT_TRUE(subnet->contains(*parse_address("10.201.255.255")));
  EXPECT_FALSE(subnet->contains(*parse_address("10.202.0.0")));
  EXPECT_TRUE(subnet->overlaps(*parse_subnet("10.201.3.0/24")));
  EXPECT_TRUE(subnet->overlaps(*parse_subnet("10.0.0.0/8")));
  for (const char* wrong : {"10.201.0.0", "10.201.0.1/16", "10.201.0/16", "10.201.0.0/33",
                            "10.201.0.0/0", "x/8", "10.0.0.0/-1"})
    EXPECT_FALSE(parse_subnet(wrong)) << wrong;
}

PrivateNetwork a_network() {
  PrivateNetwork network;
  network.bridge = "ty0";
  network.table = "trainyard_0";
  network.subnet = *parse_subnet("10.201.0.16/28");
  network.gateway = *parse_address("10.201.0.17");
  network.pool = *parse_subnet("10.201.0.0/16");
  network.comment = "a \"name\"\nhere";
  return network;
}

TEST(Firewall, MasqueradesEgressAndDeniesOtherPrivateNetworks) {
  EXPECT_EQ(firewall_text(a_network()), R"(table inet trainyard_0 {
  comment "a _name__here"
  chain input {
    type filter hook input priority filter; policy accept;
    iifname != "ty0" accept
    ct state established,related accept
    drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname != "ty0" oifname != "ty0" accept
    iifname "ty0" oifname "ty0" accept
    oifname "ty0" ct state established,related accept
    oifname "ty0" drop
    ip saddr != 10.201.0.16/28 drop
    meta nfproto ipv6 drop
    oifname "ty*" drop
    ip daddr { 10.201.0.0/16, 169.254.0.0/16 } drop
    ip daddr { 168.63.129.16, 100.100.100.200 } drop
    ct state established,related accept
    ct state new ct count over 4096 drop
    ip daddr 192.0.0.0/24 drop
    ip daddr 192.168.0.0/16 drop
    ip daddr 198.18.0.0/15 drop
    ip daddr 172.16.0.0/12 drop
    ip daddr 100.64.0.0/10 drop
    ip daddr 0.0.0.0/8 drop
    ip daddr 10.0.0.0/8 drop
    ip daddr 127.0.0.0/8 drop
    ip daddr 224.0.0.0/4 drop
    ip daddr 240.0.0.0/4 drop
    accept
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.201.0.16/28 oifname != "ty0" masquerade
  }
}
)");
}

TEST(Firewall, NetworksWithoutABridgeShareATable) {
  EXPECT_EQ(firewall_text(
                DirectFirewall{"trainyard_0_one", "tys0", *parse_subnet("10.201.0.0/16"), "a\"b"}),
            R"(table inet trainyard_0_one {
  comment "a_b"
  set connections {
    type ipv4_addr; flags dynamic; size 65536;
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname != "tys0*" accept
    ct state established,related accept
    drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname != "tys0*" oifname != "tys0*" accept
    oifname "tys0*" ct state established,related accept
    oifname "tys0*" drop
    meta nfproto ipv6 drop
    fib saddr . iif oif missing drop
    oifname "ty*" drop
    ip daddr { 10.201.0.0/16, 169.254.0.0/16 } drop
    ip daddr { 168.63.129.16, 100.100.100.200 } drop
    ct state established,related accept
    ct state new add @connections { ip saddr ct count over 4096 } drop
    ip daddr 192.0.0.0/24 drop
    ip daddr 192.168.0.0/16 drop
    ip daddr 198.18.0.0/15 drop
    ip daddr 172.16.0.0/12 drop
    ip daddr 100.64.0.0/10 drop
    ip daddr 0.0.0.0/8 drop
    ip daddr 10.0.0.0/8 drop
    ip daddr 127.0.0.0/8 drop
    ip daddr 224.0.0.0/4 drop
    ip daddr 240.0.0.0/4 drop
    accept
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.201.0.0/16 oifname != "ty*" masquerade
  }
}
)");
}

TEST(Firewall, IsolatedNetworksHaveNoEgress) {
  auto network = a_network();
  network.isolated = true;
  const std::string text = firewall_text(network);
  EXPECT_EQ(text.find("masquerade"), std::string::npos);
  EXPECT_NE(text.find("iifname \"ty0\" oifname \"ty0\" accept\n    drop\n"), std::string::npos)
      << text;
}

// Runs in a new network namespace, which represents the machine.
class RealNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !os::on_path("nft")) GTEST_SKIP() << "needs root and nft";
    made_ = true;
  }
  // Runs on a separate thread, because each thread has its namespace.
  template <class Body>
  void in_a_machine(Body body) {
    std::thread([&] {
      ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
      ASSERT_TRUE(os::run_or_fail({{"mount", "--make-rprivate", "/"}}));
      ASSERT_TRUE(os::run_or_fail({{"mount", "-t", "sysfs", "sysfs", "/sys"}}));
      ASSERT_TRUE(os::run_or_fail({{"ip", "link", "set", "lo", "up"}}));
      body();
    }).join();
  }
  PrivateNetwork network(int number, int hosts) {
    PrivateNetwork network;
    const std::string text = std::to_string(number);
    network.bridge = "tytest" + text;
    network.table = "trainyard_test" + text;
    network.pool = *parse_subnet("10.201.0.0/16");
    network.subnet = {network.pool.base + Address(number) * 16, 28};
    network.gateway = network.subnet.base + 1;
    network.relays = {*parse_address("169.254.170.2")};
    network.comment = "network_test";
    for (int i = 0; i < hosts; i++)
      network.hosts.push_back({"tvtest" + text + "_" + std::to_string(i),
                               directory_.path() + "/" + text + "_" + std::to_string(i),
                               network.gateway + 1 + Address(i)});
    return network;
  }
  static Result<std::string> inside(const PrivateHost& host, std::vector<std::string> command) {
    command.insert(command.begin(), {"nsenter", "--net=" + host.namespace_file});
    return os::run_or_fail({command, {}, "", "", 20s});
  }
  static bool pings(const PrivateHost& from, Address to) {
    return bool(inside(from, {"python3", "-c",
                              "import socket, sys\n"
                              "try: socket.create_connection((sys.argv[1], 1), timeout=1)\n"
                              "except ConnectionRefusedError: sys.exit(0)\n"
                              "except OSError: sys.exit(1)",
                              to_text(to)}));
  }
  bool made_ = false;
  os::TemporaryDirectory directory_;
};

TEST_F(RealNetwork, HostsReachOnlyEachOther) {
  in_a_machine([&] {
    const auto one = network(1, 2), two = network(2, 1);
    const auto start = std::chrono::steady_clock::now();
    auto made = make_network(one);
    ASSERT_TRUE(made) << made.error().message;
    std::printf("two hosts: %.1f ms\n",
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                    .count());
    ASSERT_TRUE(make_network(two));
    EXPECT_TRUE(pings(one.hosts[0], one.hosts[1].address));
    EXPECT_TRUE(pings(one.hosts[0], *parse_address("169.254.170.2"))) << "its own relay";
    EXPECT_FALSE(pings(one.hosts[0], two.hosts[0].address)) << "another network";
    EXPECT_FALSE(pings(one.hosts[0], one.gateway)) << "this machine";
    EXPECT_FALSE(pings(one.hosts[0], two.gateway)) << "this machine";
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(remove_network(one));
    std::printf("removed: %.1f ms\n",
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                    .count());
    EXPECT_TRUE(remove_network(one)) << "twice";
    EXPECT_TRUE(remove_network(two));
    EXPECT_TRUE(links_named("ty").empty());
    EXPECT_TRUE(links_named("tv").empty());
    const auto tables = firewall_tables_named("trainyard_");
    ASSERT_TRUE(tables);
    EXPECT_TRUE(tables->empty());
    const auto names = os::list_directory(directory_.path());
    ASSERT_TRUE(names);
    EXPECT_TRUE(names->empty());
  });
}

TEST_F(RealNetwork, ReplacesAFirewallThatIsThere) {
  in_a_machine([&] {
    DirectFirewall firewall{"trainyard_test", "tys0", *parse_subnet("10.201.0.0/16"), "one"};
    const auto rules = [&] {
      return *os::run_or_fail({{"nft", "list", "table", "inet", firewall.table}});
    };
    EXPECT_FALSE(has_firewall_table(firewall.table));
    const auto made = make_firewall(firewall);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(has_firewall_table(firewall.table));
    const std::string before = rules();
    ASSERT_TRUE(make_firewall(firewall));
    EXPECT_EQ(rules(), before);
    firewall.comment = "two";
    ASSERT_TRUE(make_firewall(firewall));
    EXPECT_NE(rules(), before);
  });
}

TEST_F(RealNetwork, ReplacesHosts) {
  in_a_machine([&] {
    const auto former = network(1, 2);
    ASSERT_TRUE(make_network(former));
    EXPECT_TRUE(pings(former.hosts[0], former.hosts[1].address));
    auto next = former;
    for (auto& host : next.hosts) host.namespace_file += "-next";
    const auto replaced = replace_hosts(former, next);
    ASSERT_TRUE(replaced) << replaced.error().message;
    EXPECT_EQ(replaced->size(), 2u);
    EXPECT_TRUE(pings(next.hosts[0], next.hosts[1].address));
    EXPECT_TRUE(pings(next.hosts[0], *parse_address("169.254.170.2"))) << "its own relay";
    EXPECT_FALSE(pings(next.hosts[0], next.gateway)) << "the firewall stays";
    EXPECT_FALSE(os::exists(former.hosts[0].namespace_file));
    EXPECT_TRUE(remove_network(next));
    EXPECT_TRUE(remove_network(former)) << "a record of the previous one may be left";
    EXPECT_FALSE(replace_hosts(former, next)) << "it is not there";
    EXPECT_TRUE(remove_network(next));
    const auto names = os::list_directory(directory_.path());
    ASSERT_TRUE(names);
    EXPECT_TRUE(names->empty());
  });
}

TEST_F(RealNetwork, ReachesTheOutsideUnlessIsolated) {
  in_a_machine([&] {
    // Another namespace, behind an interface of the machine, represents the outside.
    ASSERT_TRUE(os::run_or_fail(
        {{"sh", "-ec",
          "touch " + directory_.path() + "/outside; unshare --net=" + directory_.path() +
              "/outside true; "
              "ip link add out0 type veth peer name out1; ip link set out1 netns " +
              directory_.path() +
              "/outside; "
              "ip addr add 192.0.2.1/24 dev out0; ip link set out0 up; "
              "nsenter --net=" +
              directory_.path() +
              "/outside sh -ec 'ip addr add 192.0.2.2/24 dev out1; ip link set out1 up'"}}));
    const Address outside = *parse_address("192.0.2.2");
    auto open = network(1, 1), isolated = network(2, 2);
    isolated.isolated = true;
    auto made = make_network(open);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(make_network(isolated));
    EXPECT_TRUE(pings(open.hosts[0], outside));
    EXPECT_FALSE(pings(isolated.hosts[0], outside));
    EXPECT_TRUE(pings(isolated.hosts[0], isolated.hosts[1].address));
    EXPECT_TRUE(remove_network(open));
    EXPECT_TRUE(remove_network(isolated));
    ASSERT_TRUE(remove_namespace_file(directory_.path() + "/outside"));
  });
}

TEST_F(RealNetwork, ReachesTheOutsideThroughAFirewallThatDropsByDefault) {
  in_a_machine([&] {
    const auto forward = [] {
      return *os::run_or_fail({{"nft", "list", "chain", "ip", "filter", "FORWARD"}});
    };
    EXPECT_FALSE(*let_through_foreign_forwarding()) << "there is no other firewall";
    ASSERT_TRUE(os::run_or_fail(
        {{"nft", "-f", "-"},
         {},
         "table ip filter { chain FORWARD { type filter hook forward priority filter; policy drop; "
         "iifname \"docker0\" accept; }; }\n"}));
    const std::string before = forward();
    ASSERT_TRUE(let_through_foreign_forwarding());
    EXPECT_FALSE(*let_through_foreign_forwarding()) << "once is enough";
    EXPECT_NE(forward().find("iifname \"ty*\" accept"), std::string::npos) << forward();
    EXPECT_NE(forward().find("oifname \"ty*\" accept"), std::string::npos) << forward();
    EXPECT_LT(forward().find("docker0"), forward().find("ty*"))
        << "the rules of other programs come first: " << forward();
    ASSERT_TRUE(stop_foreign_forwarding());
    EXPECT_EQ(forward(), before);
    ASSERT_TRUE(stop_foreign_forwarding()) << "again";
  });
}

TEST_F(RealNetwork, KeepsThePolicyOfUfw) {
  in_a_machine([&] {
    ASSERT_TRUE(os::run_or_fail(
        {{"nft", "-f", "-"},
         {},
         "table ip filter { chain ufw-before-forward { }; chain FORWARD { type filter hook "
         "forward priority filter; policy drop; jump ufw-before-forward; }; }\n"}));
    const std::string before =
        *os::run_or_fail({{"nft", "list", "chain", "ip", "filter", "FORWARD"}});
    const auto opened = let_through_foreign_forwarding();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, Kind::denied);
    EXPECT_NE(opened.error().message.find("ufw route allow"), std::string::npos)
        << opened.error().message;
    EXPECT_EQ(*os::run_or_fail({{"nft", "list", "chain", "ip", "filter", "FORWARD"}}), before);
  });
}

TEST_F(RealNetwork, ReachesPrivateNetworksOnlyByRule) {
  in_a_machine([&] {
    ASSERT_TRUE(os::run_or_fail(
        {{"sh", "-ec",
          "touch " + directory_.path() + "/outside; unshare --net=" + directory_.path() +
              "/outside true; ip link add out0 type veth peer name out1; ip link set out1 netns " +
              directory_.path() +
              "/outside; ip addr add 192.168.77.1/24 dev out0; ip link set out0 up; ip route add "
              "100.100.100.200 via 192.168.77.2; nsenter --net=" +
              directory_.path() +
              "/outside sh -ec 'ip addr add 192.168.77.2/24 dev out1; ip addr add "
              "100.100.100.200/32 dev out1; ip "
              "addr add 192.168.77.3/24 dev out1; ip link set out1 up'"}}));
    auto closed = network(1, 1), opened = network(2, 1);
    opened.egress.rules = {{*parse_subnet("192.168.77.2/32"), true},
                           {*parse_subnet("100.100.100.200/32"), true}};
    ASSERT_TRUE(make_network(closed));
    ASSERT_TRUE(make_network(opened));
    EXPECT_FALSE(pings(closed.hosts[0], *parse_address("192.168.77.2"))) << "a private range";
    EXPECT_TRUE(pings(opened.hosts[0], *parse_address("192.168.77.2"))) << "the config's rule";
    EXPECT_FALSE(pings(opened.hosts[0], *parse_address("192.168.77.3"))) << "its neighbour";
    EXPECT_FALSE(pings(opened.hosts[0], *parse_address("100.100.100.200")))
        << "metadata, whatever the rules say";
    EXPECT_TRUE(remove_network(closed));
    EXPECT_TRUE(remove_network(opened));
    ASSERT_TRUE(remove_namespace_file(directory_.path() + "/outside"));
  });
}

TEST_F(RealNetwork, RemovesEverythingIfItCannotBeMade) {
  in_a_machine([&] {
    auto broken = network(1, 2);
    broken.hosts[1].link = broken.hosts[0].link;
    const auto made = make_network(broken);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, Kind::conflict) << made.error().message;
    EXPECT_TRUE(links_named("ty").empty());
    EXPECT_TRUE(links_named("tv").empty());
    const auto names = os::list_directory(directory_.path());
    ASSERT_TRUE(names);
    EXPECT_TRUE(names->empty());
  });
}

TEST_F(RealNetwork, FindsNetworksInUse) {
  in_a_machine([&] {
    const auto one = network(3, 1);
    ASSERT_TRUE(make_network(one));
    const auto used = networks_in_use();
    ASSERT_TRUE(used);
    EXPECT_NE(std::find(used->begin(), used->end(), one.subnet), used->end());
    EXPECT_TRUE(remove_network(one));
  });
}

}  // namespace
}  // namespace trainyard::networks

// Networks has the network resources of one region: VPCs, subnets, security groups with their
// rules, internet gateways and route tables.
//
// They are only described: they neither filter nor route packets of jobs (README.md). A new region
// has the default resources that AWS gives to every account.
//
// Threads: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::api::ec2 {

using Tags = std::map<std::string, std::string>;

struct Resource {
  std::string id;  // "vpc-0123456789abcdef0"
  Tags tags;
  bool operator==(const Resource&) const = default;
};

struct Vpc : Resource {
  std::string cidr;         // without host bits: "10.0.0.0/16"
  std::string association;  // id of the association of the range
  bool is_default = false;
  std::string tenancy = "default";
  bool dns_support = true;
  bool dns_hostnames = false;
  bool usage_metrics = false;
  bool operator==(const Vpc&) const = default;
};

struct Subnet : Resource {
  std::string vpc;
  std::string cidr;
  std::string zone;  // "eu-west-1a"
  bool default_for_zone = false;
  bool public_addresses = false;  // instances get public addresses
  bool operator==(const Subnet&) const = default;
};

// A rule allows traffic with one peer: exactly one of the three peers is not empty.
struct Rule : Resource {
  bool egress = false;
  std::string protocol = "-1";  // "tcp", "udp", "icmp", "icmpv6", a number; "-1" = all
  int64_t from = -1, to = -1;   // ports, or type and code of ICMP; -1 = all
  std::string cidr, cidr6, group;
  std::string description;
  bool operator==(const Rule&) const = default;
};

struct SecurityGroup : Resource {
  std::string vpc;
  std::string name;  // unique in the VPC
  std::string description;
  std::vector<Rule> rules;
  bool operator==(const SecurityGroup&) const = default;
};

struct InternetGateway : Resource {
  std::string vpc;  // "" = detached
  bool operator==(const InternetGateway&) const = default;
};

struct Route {
  std::string destination;  // a range
  std::string gateway;      // an internet gateway
  bool operator==(const Route&) const = default;
};

struct SubnetAssociation {
  std::string id;
  std::string subnet;
  bool operator==(const SubnetAssociation&) const = default;
};

struct RouteTable : Resource {
  std::string vpc;
  std::string main_association;  // set in the main table of the VPC
  std::vector<Route> routes;     // without the route to the VPC itself
  std::vector<SubnetAssociation> associations;
  bool operator==(const RouteTable&) const = default;
};

template <class T>
using ById = std::map<std::string, T>;

struct Networks {
  ById<Vpc> vpcs;
  ById<Subnet> subnets;
  ById<SecurityGroup> groups;
  ById<InternetGateway> gateways;
  ById<RouteTable> route_tables;

  const Vpc* default_vpc() const;  // nullptr if it was deleted
};

// Makes an id with a prefix: "vpc-" -> "vpc-0123456789abcdef0".
using MakeId = std::function<std::string(std::string_view prefix)>;

// The letters of each region's zones, after its name.
inline constexpr std::array<std::string_view, 3> kZoneLetters{"a", "b", "c"};
std::vector<std::string> zones_of(const std::string& region);
// Returns the zone's id, which is the same for every account: "eu-central-1b" -> "euc1-az2".
// Requires: zones_of(region) has the zone.
std::string zone_id(const std::string& region, const std::string& zone);

// Adds a VPC with its default security group and its main route table, as on AWS.
Vpc& add_vpc(Networks& networks, const std::string& cidr, const MakeId& make_id);
// Adds the default VPC, with a subnet in each zone and an internet gateway.
Vpc& add_default_vpc(Networks& networks, const std::string& region, const MakeId& make_id);
// Makes the resources of a region that was never changed. Equal arguments give equal ids.
Networks default_networks(const std::string& account, const std::string& region);

// Makes the rule of a new security group that allows all egress.
Rule all_egress(const MakeId& make_id);

}  // namespace trainyard::api::ec2

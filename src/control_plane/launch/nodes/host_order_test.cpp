#include "launch/nodes/host_order.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace trainyard::launch {
namespace {

// An order as releases before this test wrote it.
constexpr const char* kOrder = R"({
  "version": 1,
  "record": {"version": 1, "attempt": "j17a1", "token": "", "bridge": "ty3fa91c0010",
    "table": "trainyard_3fa91c_0010", "subnet": "10.201.0.16/28", "gateway": "10.201.0.17",
    "pool": "10.201.0.0/16", "isolated": false, "encrypted": false, "comment": "trainyard",
    "relays": ["169.254.170.2"], "gpus": [],
    "hosts": [{"link": "tv3fa91c0012", "namespace": "j17a1-0", "address": "10.201.0.18"}]},
  "mark": "3fa91c", "member": 0, "host": 0, "node_directory": "/var/lib/trainyard-node",
  "egress": {"rules": [{"subnet": "10.0.0.0/8", "allowed": true}],
    "services": [{"address": "10.0.0.2", "port": 53}], "connections_max": 4096},
  "names_by_machine": true, "own_address": "10.0.0.1", "peers": ["n2"],
  "host_table": "127.0.0.1 localhost\n", "environment": {"A": "b"}, "gpus": 1, "order": "{}",
  "idle_ms": 5000, "time_limit_ms": 5400000, "served": 3})";

Json order_json() { return *parse_json(kOrder); }
Result<HostOrder> read_order(const Json& order) { return read_host_order(dump(order)); }

TEST(HostOrder, IsWrittenAsItWasRead) {
  const auto order = read_order(order_json());
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(*parse_json(to_text(*order)), order_json());
  EXPECT_EQ(order->egress.services.at(0).port, 53);
  EXPECT_EQ(order->idle_max, 5s);
  EXPECT_EQ(order->served, 3u);
}

TEST(HostOrder, EveryMemberIsRequiredExceptThoseOfReuse) {
  const Json whole = order_json();
  for (const auto& [name, value] : whole.items()) {
    Json order = whole;
    order.erase(name);
    const bool optional = name == "idle_ms" || name == "time_limit_ms" || name == "served";
    EXPECT_EQ(bool(read_order(order)), optional) << name;
  }
  for (const char* name : {"rules", "services", "connections_max"}) {
    Json order = whole;
    order["egress"].erase(name);
    EXPECT_FALSE(read_order(order)) << name;
  }
  Json open = whole;
  open["egress"]["rules"][0].erase("allowed");
  EXPECT_FALSE(read_order(open)) << "a rule must say whether it allows";
}

TEST(HostOrder, NumbersBeyondTheirLimitsAreRejected) {
  const auto refused = [](const char* path, const Json& value) {
    Json order = order_json();
    order[Json::json_pointer(path)] = value;
    return !read_order(order);
  };
  for (const char* path : {"/member", "/host", "/gpus", "/egress/connections_max", "/idle_ms",
                           "/time_limit_ms", "/served", "/egress/services/0/port", "/version"})
    for (const Json& value : {Json(-1), Json(UINT64_MAX), Json(1.5), Json("1")})
      EXPECT_TRUE(refused(path, value)) << path << " " << value.dump();
  EXPECT_TRUE(refused("/member", 1)) << "the node has one host";
  EXPECT_TRUE(refused("/egress/services/0/port", 65'536));
  EXPECT_FALSE(refused("/egress/services/0/port", 65'535));
}

TEST(HostOrder, NamesArePlain) {
  const auto refused = [](const char* path, const char* value) {
    Json order = order_json();
    order[Json::json_pointer(path)] = value;
    return !read_order(order);
  };
  for (const char* name : {"", ".", "..", "a/b"}) {
    EXPECT_TRUE(refused("/mark", name)) << name;
    EXPECT_TRUE(refused("/record/hosts/0/namespace", name)) << name;
  }
  EXPECT_TRUE(refused("/node_directory", "relative"));
}

}  // namespace
}  // namespace trainyard::launch

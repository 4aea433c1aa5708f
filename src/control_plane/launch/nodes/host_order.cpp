#include "launch/nodes/host_order.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"
#include "launch/network_forms.hpp"

namespace trainyard::launch {
namespace {

constexpr int64_t kHostOrderVersion = 1;
constexpr int64_t kPortMax = 65'535;
// The longest run time of a job, and as much for the margins that the configuration adds.
constexpr int64_t kOrderMsMax = 2 * domain::kSecondsMax * 1000;
constexpr int64_t kOrderConnectionsMax = int64_t{1} << 31;

// Returns true for names of directories below the node's: they have one component.
bool is_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos;
}

Result<void> check_bound(std::string_view name, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return {};
  return invalid("invalid " + std::string(name) + ' ' + std::to_string(value) +
                 ": it must be between 0 and " + std::to_string(max));
}

Result<void> check_order(const HostOrder& order) {
  TRY(check_bound("host", order.host, domain::kGangHostsMax));
  TRY(check_bound("gpus", order.gpus, domain::kHostGpusMax));
  TRY(check_bound("connections_max", order.egress.connections_max, kOrderConnectionsMax));
  if (order.member >= order.record.network.hosts.size())
    return invalid("invalid member " + std::to_string(order.member) + ": the node has " +
                   std::to_string(order.record.network.hosts.size()) + " hosts");
  if (!is_name(order.mark)) return invalid("invalid mark '" + shorten(order.mark, 40) + "'");
  if (!order.node_directory.starts_with('/'))
    return invalid("invalid node_directory '" + shorten(order.node_directory, 200) +
                   "': must be an absolute path");
  for (const auto& host : order.record.network.hosts)
    if (!is_name(host.namespace_file))
      return invalid("invalid name of a network namespace '" + shorten(host.namespace_file, 40) +
                     "'");
  return {};
}

struct PortForm {
  using Value = uint16_t;
  static Json write(const Value& port) { return port; }
  static Result<void> read_into(const Json& json, Value& port) {
    if (!json.is_number_integer()) return invalid("a port must be a whole number");
    const auto number = json.get<int64_t>();
    TRY(check_bound("port", number, kPortMax));
    port = uint16_t(number);
    return {};
  }
};

constexpr auto kEgressRule =
    complete(json_record<networks::EgressRule>("rule", [](auto& side, auto& rule) {
      side("subnet", rule.subnet, SubnetForm());
      side("allowed", rule.allowed);
    }));

constexpr auto kEgressService =
    complete(json_record<networks::EgressService>("service", [](auto& side, auto& service) {
      side("address", service.address, AddressForm());
      side("port", service.port, PortForm());
    }));

constexpr auto kEgress =
    complete(json_record<networks::Egress>("egress", [](auto& side, auto& egress) {
      side("rules", egress.rules, kEgressRule);
      side("services", egress.services, kEgressService);
      side("connections_max", egress.connections_max);
    }));

constexpr auto kHostOrder = complete(json_record<HostOrder>(
    "order",
    [](auto& side, auto& order) {
      side("record", order.record, record_from_json);
      side("mark", order.mark);
      side("member", order.member);
      side("host", order.host);
      side("node_directory", order.node_directory);
      side("egress", order.egress, kEgress);
      side("names_by_machine", order.names_by_machine);
      side("own_address", order.own_address);
      side("peers", order.peers);
      side("host_table", order.host_table);
      side("environment", order.environment);
      side("gpus", order.gpus);
      side("order", order.order);
    },
    check_order));

// Reads members that orders of earlier releases lack.
constexpr auto kLater = json_record<HostOrder>(
    "order",
    [](auto& side, auto& order) {
      side("idle_ms", order.idle_max);
      side("time_limit_ms", order.time_limit);
      side("served", order.served);
      side.if_set("user", order.user);
      side.if_set("user_id", order.user_id);
      side.if_set("endpoints", order.endpoints);
    },
    [](const HostOrder& order) -> Result<void> {
      TRY(check_bound("idle_ms", order.idle_max.count(), kOrderMsMax));
      return check_bound("time_limit_ms", order.time_limit.count(), kOrderMsMax);
    });

Json to_json(const HostOrder& order) {
  Json json = kHostOrder.write(order);
  json["version"] = kHostOrderVersion;
  json.update(kLater.write(order));
  return json;
}

Result<HostOrder> read_json(const Json& json) {
  if (const int64_t version = TRY(int_at(json, "version")); version != kHostOrderVersion)
    return invalid("the order has version " + std::to_string(version) +
                   ", but this program reads version " + std::to_string(kHostOrderVersion) +
                   "; install the same release on the node");
  HostOrder order = TRY(kHostOrder.read(json));
  TRY(kLater.read_into(json, order));
  return order;
}

// The members of split orders: those of the order, those of the agent's order within it, and the
// addresses of all nodes instead of each node's peers.
constexpr const char* kMembers = "members";
constexpr const char* kAgentMembers = "agent_members";
constexpr const char* kNodes = "nodes";
constexpr const char* kPeers = "peers";
constexpr const char* kOwnAddress = "own_address";
constexpr const char* kOrder = "order";

// Moves what all objects have, with equal values, to the result, within their objects too.
Json take_shared(const std::vector<Json*>& objects) {
  Json shared = Json::object();
  if (objects.empty()) return shared;
  const Json first = *objects.front();  // a copy, since members are erased
  for (const auto& member : first.items()) {
    const std::string& name = member.key();
    const auto all = [&](const auto& holds) {
      return std::ranges::all_of(
          objects, [&](const Json* each) { return each->contains(name) && holds((*each)[name]); });
    };
    if (all([&](const Json& value) { return value == member.value(); })) {
      shared[name] = member.value();
      for (Json* each : objects) each->erase(name);
    } else if (all([](const Json& value) { return value.is_object(); })) {
      std::vector<Json*> inner;
      for (Json* each : objects) inner.push_back(&(*each)[name]);
      shared[name] = take_shared(inner);
    }
  }
  return shared;
}

Json take_shared(std::vector<Json>& objects) {
  std::vector<Json*> pointers;
  for (Json& each : objects) pointers.push_back(&each);
  return take_shared(pointers);
}

// Adds the members of `part` to `object`, and those of its objects to the same ones there.
void add_members(Json& object, const Json& part) {
  for (const auto& member : part.items()) {
    Json& value = object[member.key()];
    if (value.is_object() && member.value().is_object())
      add_members(value, member.value());
    else
      value = member.value();
  }
}

Json peers_of(const Json& nodes, const Json& own_address) {
  Json peers = Json::array();
  for (const Json& node : nodes)
    if (node != own_address) peers.push_back(node);
  return peers;
}

// Writes an agent's order as wire/codec.hpp does.
std::string agent_text(const Json& order) { return dump(order, 2) + "\n"; }

// Returns the agents' orders as objects; nothing if a text would not be written in the same way.
std::optional<std::vector<Json>> agent_orders_of(const std::vector<Json>& orders) {
  std::vector<Json> agents;
  for (const Json& order : orders) {
    const auto text = order[kOrder].get<std::string>();
    auto agent = parse_json(text);
    if (!agent || !agent->is_object() || agent_text(*agent) != text) return {};
    agents.push_back(*std::move(agent));
  }
  return agents;
}

Result<Json> joined_members(const Json& shared, const Json& own, const char* name) {
  Json members = Json::object();
  for (const Json* part : {&shared, &own}) {
    if (!part->is_object() || !part->contains(name) || !(*part)[name].is_object())
      return invalid("a part of the order has no object named " + std::string(name));
    add_members(members, (*part)[name]);
  }
  return members;
}

}  // namespace

bool has_same_network(const HostOrder& previous, const HostOrder& next) {
  const auto network_of = [](const HostOrder& order) {
    Record record = order.record;
    record.attempt = {};
    record.token.clear();
    record.network.comment.clear();
    for (auto& host : record.network.hosts) host.namespace_file.clear();
    return to_json(record);
  };
  return !previous.record.network.direct() && previous.record.network.hosts.size() == 1 &&
         previous.peers.empty() && next.peers.empty() && previous.mark == next.mark &&
         previous.node_directory == next.node_directory && previous.user == next.user &&
         previous.egress == next.egress && previous.names_by_machine == next.names_by_machine &&
         network_of(previous) == network_of(next);
}

std::string to_text(const HostOrder& order) { return dump(to_json(order)); }

Result<HostOrder> read_host_order(std::string_view text) {
  if (text.size() > kHostOrderBytesMax)
    return invalid("the order has more than " + std::to_string(kHostOrderBytesMax) + " bytes");
  return read_json(TRY(parse_json(text)));
}

SplitOrders split_orders(const std::vector<HostOrder>& orders) {
  std::vector<Json> members;
  Json shared = Json::object(), nodes = Json::array();
  for (const HostOrder& order : orders) {
    members.push_back(to_json(order));
    nodes.push_back(order.own_address);
  }
  const bool reach_all = std::ranges::all_of(members, [&](const Json& order) {
    return order[kPeers] == peers_of(nodes, order[kOwnAddress]);
  });
  if (reach_all) {
    for (Json& order : members) order.erase(kPeers);
    shared[kNodes] = nodes;
  }
  auto agents = agent_orders_of(members);
  if (agents) {
    for (Json& order : members) order.erase(kOrder);
    shared[kAgentMembers] = take_shared(*agents);
  }
  shared[kMembers] = take_shared(members);
  SplitOrders split = {dump(shared), {}};
  for (size_t i = 0; i < orders.size(); ++i) {
    Json own = {{kMembers, std::move(members[i])}};
    if (agents) own[kAgentMembers] = std::move((*agents)[i]);
    split.own.push_back(dump(own));
  }
  return split;
}

Result<HostOrder> join_order(std::string_view shared_text, std::string_view own_text) {
  if (shared_text.size() > kHostOrderBytesMax || own_text.size() > kHostOrderBytesMax)
    return invalid("a part of the order has more than " + std::to_string(kHostOrderBytesMax) +
                   " bytes");
  const Json shared = TRY(parse_json(shared_text)), own = TRY(parse_json(own_text));
  Json members = TRY(joined_members(shared, own, kMembers));
  if (shared.contains(kNodes)) {
    if (!shared[kNodes].is_array()) return invalid("nodes must be a list of addresses");
    members[kPeers] = peers_of(shared[kNodes], TRY(string_at(members, kOwnAddress)));
  }
  if (shared.contains(kAgentMembers))
    members[kOrder] = agent_text(TRY(joined_members(shared, own, kAgentMembers)));
  return read_json(members);
}

}  // namespace trainyard::launch

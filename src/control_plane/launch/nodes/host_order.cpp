#include "launch/nodes/host_order.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"

namespace trainyard::launch {
namespace {

constexpr int64_t kHostOrderVersion = 1;
constexpr int64_t kPortMax = 65'535;
constexpr int64_t kServedMax = UINT32_MAX;
constexpr int64_t kOrderMsMax = int64_t{366} * 24 * 3600 * 1000;
constexpr int64_t kOrderConnectionsMax = int64_t{1} << 31;

Result<const Json*> container_at(const Json& json, const char* key, bool list) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (found == json.end() || (list ? !found->is_array() : !found->is_object()))
    return invalid(std::string(key) + " must be " + (list ? "a list" : "an object"));
  return &*found;
}
Result<const Json*> array_at(const Json& json, const char* key) {
  return container_at(json, key, true);
}
Result<const Json*> object_at(const Json& json, const char* key) {
  return container_at(json, key, false);
}

Json egress_json(const networks::Egress& egress) {
  Json rules = Json::array(), services = Json::array();
  for (const auto& rule : egress.rules)
    rules.push_back({{"subnet", rule.subnet.text()}, {"allowed", rule.allowed}});
  for (const auto& service : egress.services)
    services.push_back({{"address", networks::to_text(service.address)}, {"port", service.port}});
  return {{"rules", rules}, {"services", services}, {"connections_max", egress.connections_max}};
}

Result<int64_t> bounded(const Json& json, const char* key, int64_t max) {
  const int64_t number = TRY(int_at(json, key));
  if (number < 0 || number > max)
    return invalid(std::string(key) + " is " + std::to_string(number) +
                   ": it must be between 0 and " + std::to_string(max));
  return number;
}

Result<networks::Egress> read_egress(const Json& json) {
  networks::Egress egress;
  for (const Json& each : *TRY(array_at(json, "rules")))
    egress.rules.push_back({TRY(networks::parse_subnet(TRY(string_at(each, "subnet")))),
                            TRY(bool_at(each, "allowed"))});
  for (const Json& each : *TRY(array_at(json, "services")))
    egress.services.push_back({TRY(networks::parse_address(TRY(string_at(each, "address")))),
                               uint16_t(TRY(bounded(each, "port", kPortMax)))});
  egress.connections_max = uint32_t(TRY(bounded(json, "connections_max", kOrderConnectionsMax)));
  return egress;
}

Result<void> read_environment(const Json& json, HostOrder& order) {
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return invalid("the variable " + name + " must be a string");
    order.environment[name] = value.get<std::string>();
  }
  return {};
}

// Names of directories below the node's: one component each.
bool is_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos;
}

Result<void> check(const HostOrder& order) {
  if (order.member >= order.record.network.hosts.size())
    return invalid("member " + std::to_string(order.member) + " is not one of the node's " +
                   std::to_string(order.record.network.hosts.size()) + " hosts");
  if (!is_name(order.mark)) return invalid("invalid mark '" + shorten(order.mark, 40) + "'");
  if (!order.node_directory.starts_with('/'))
    return invalid("node_directory must be an absolute path");
  for (const auto& host : order.record.network.hosts)
    if (!is_name(host.namespace_file)) return invalid("invalid name of a network namespace");
  return {};
}

}  // namespace

std::string to_text(const HostOrder& order) {
  return dump({{"version", kHostOrderVersion},
               {"record", to_json(order.record)},
               {"mark", order.mark},
               {"member", order.member},
               {"host", order.host},
               {"node_directory", order.node_directory},
               {"egress", egress_json(order.egress)},
               {"names_by_machine", order.names_by_machine},
               {"own_address", order.own_address},
               {"peers", order.peers},
               {"host_table", order.host_table},
               {"environment", order.environment},
               {"gpus", order.gpus},
               {"order", order.order},
               {"idle_ms", order.idle_max.count()},
               {"time_limit_ms", order.time_limit.count()},
               {"served", order.served}});
}

Result<HostOrder> read_host_order(std::string_view text) {
  if (text.size() > kHostOrderBytesMax)
    return invalid("the order has more than " + std::to_string(kHostOrderBytesMax) + " bytes");
  const Json json = TRY(parse_json(text));
  if (const int64_t version = TRY(int_at(json, "version")); version != kHostOrderVersion)
    return invalid("the server sends orders of version " + std::to_string(version) +
                   ", and this program reads version " + std::to_string(kHostOrderVersion) +
                   ": install the same release on the node");
  HostOrder order;
  order.record = TRY(record_from_json(*TRY(object_at(json, "record"))));
  order.mark = TRY(string_at(json, "mark"));
  order.member = size_t(TRY(bounded(json, "member", domain::kGangHostsMax)));
  order.host = domain::HostIndex(TRY(bounded(json, "host", domain::kGangHostsMax)));
  order.node_directory = TRY(string_at(json, "node_directory"));
  order.egress = TRY(read_egress(*TRY(object_at(json, "egress"))));
  order.names_by_machine = TRY(bool_at(json, "names_by_machine"));
  order.own_address = TRY(string_at(json, "own_address"));
  for (const Json& peer : *TRY(array_at(json, "peers"))) {
    if (!peer.is_string()) return invalid("a peer must be a string");
    order.peers.push_back(peer.get<std::string>());
  }
  order.host_table = TRY(string_at(json, "host_table"));
  TRY(read_environment(*TRY(object_at(json, "environment")), order));
  order.gpus = TRY(bounded(json, "gpus", domain::kHostGpusMax));
  order.order = TRY(string_at(json, "order"));
  // Releases before the reuse of allocations do not send them.
  if (json.contains("idle_ms")) {
    order.idle_max = Duration(TRY(bounded(json, "idle_ms", kOrderMsMax)));
    order.time_limit = Duration(TRY(bounded(json, "time_limit_ms", kOrderMsMax)));
    order.served = uint32_t(TRY(bounded(json, "served", kServedMax)));
  }
  TRY(check(order));
  return order;
}

}  // namespace trainyard::launch

#include "launch/local/plan.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/fnv.hpp"

namespace trainyard::launch {
namespace {

constexpr int kRecordVersion = 1;
constexpr uint64_t kReservedAddresses = 3;  // the network's own, the bridge's, the broadcast
// 13 hosts: small enough for 4,096 gangs in a /16, large enough for most
constexpr int kSmallestPrefix = 28;

std::string hex(uint64_t number, int digits) {
  std::string text;
  for (int i = digits - 1; i >= 0; i--) text += "0123456789abcdef"[number >> (4 * i) & 15];
  return text;
}

}  // namespace

std::string server_mark(std::string_view data_directory) {
  while (data_directory.size() > 1 && data_directory.back() == '/') data_directory.remove_suffix(1);
  const uint64_t hash = fnv1a(data_directory);
  return hex((hash ^ (hash >> 24) ^ (hash >> 48)) & 0xffffff, 6);
}

Result<networks::Subnet> choose_subnet(const networks::Subnet& pool, size_t hosts,
                                       const std::vector<networks::Subnet>& taken,
                                       networks::Address start, bool encrypted) {
  const uint64_t size =
      std::max(std::bit_ceil(uint64_t(hosts) + kReservedAddresses) * (encrypted ? 2 : 1),
               uint64_t(1) << (32 - kSmallestPrefix));
  if (size > pool.size())
    return exhausted("a gang of " + std::to_string(hosts) +
                     " hosts does not fit into the network pool " + pool.text());
  const uint64_t blocks = pool.size() / size;
  const uint64_t first = pool.contains(start) ? (start - pool.base + size - 1) / size : 0;
  const int prefix = 32 - std::countr_zero(size);
  for (uint64_t i = 0; i < blocks; i++) {
    const networks::Subnet candidate{networks::Address(pool.base + (first + i) % blocks * size),
                                     prefix};
    const bool free = std::none_of(taken.begin(), taken.end(), [&](const networks::Subnet& used) {
      return used.overlaps(candidate);
    });
    if (free) return candidate;
  }
  return exhausted("the network pool " + pool.text() + " has no free subnet for a gang of " +
                   std::to_string(hosts) + " hosts: " + std::to_string(taken.size()) +
                   " networks are in use");
}

int64_t gang_hosts_max(const networks::Subnet& pool, bool encrypted) {
  return int64_t(pool.size() / (encrypted ? 2 : 1)) - int64_t(kReservedAddresses);
}

networks::DirectFirewall direct_firewall(const std::string& mark, const networks::Subnet& pool) {
  return {std::string(networks::kTablePrefix) + mark + "_one",
          std::string(networks::kDirectPrefix) + mark, pool, "trainyard: gangs of one host"};
}

networks::Egress with_own_networks(networks::Egress egress,
                                   const std::vector<networks::Subnet>& in_use,
                                   const networks::Subnet& pool) {
  for (const auto& network : in_use)
    if (!network.overlaps(pool) && network.base >> 24 != 127)
      egress.own_networks.push_back(network);
  return egress;
}

const std::vector<networks::EgressRule>* rules_of_role(
    const std::map<std::string, std::vector<networks::EgressRule>>& of_roles,
    const std::string& role_arn) {
  auto found = of_roles.find(role_arn);
  if (found == of_roles.end()) found = of_roles.find(role_arn.substr(role_arn.rfind('/') + 1));
  return found == of_roles.end() || role_arn.empty() ? nullptr : &found->second;
}

networks::PrivateNetwork plan_network(const NetworkRequest& request, const networks::Subnet& pool,
                                      const networks::Subnet& subnet) {
  // hosts' own addresses are behind it
  const uint64_t half = request.encrypted ? subnet.size() / 2 : 0;
  CHECK(request.hosts + kReservedAddresses <= subnet.size() - half,
        "choose_subnet reserves an address for each host");
  CHECK(!request.direct || (request.hosts == 1 && !request.isolated), "others need a bridge");
  const int digits = (32 - pool.prefix + 3) / 4;
  const std::string place = hex(subnet.base - pool.base, digits);
  networks::PrivateNetwork network;
  if (!request.direct) {
    network.bridge = std::string(networks::kBridgePrefix) + request.mark + place;
    network.table = std::string(networks::kTablePrefix) + request.mark + "_" + place;
  }
  network.subnet = subnet;
  network.gateway = subnet.base + 1;
  network.pool = pool;
  network.isolated = request.isolated;
  network.encrypted = request.encrypted;
  network.relays = request.relays;
  network.comment = request.comment;
  for (size_t i = 0; i < request.hosts; i++) {
    const networks::Address made = network.gateway + 1 + networks::Address(i);
    network.hosts.push_back(
        {request.direct
             ? std::string(networks::kDirectPrefix) + request.mark + place
             : std::string(networks::kLinkPrefix) + request.mark + hex(made - pool.base, digits),
         request.direct
             ? ""
             : request.namespace_directory + "/" + request.attempt.text() + "-" + std::to_string(i),
         made + networks::Address(half), request.encrypted ? made : 0});
  }
  return network;
}

std::string underlay_words(const networks::PrivateNetwork& network) {
  return networks::to_text(network.gateway) + "/" + std::to_string(network.subnet.prefix + 1);
}

std::string host_table(const networks::PrivateNetwork& network) {
  std::string text = "127.0.0.1 localhost\n";
  for (size_t i = 0; i < network.hosts.size(); i++)
    text += networks::to_text(network.hosts[i].address) + " " +
            domain::host_name(domain::HostIndex(i)) + "\n";
  return text;
}

Result<std::vector<std::vector<std::string>>> choose_gpus(const std::vector<GpuRequest>& requests,
                                                          const std::set<std::string>& taken) {
  std::set<std::string> given = taken;
  std::vector<std::vector<std::string>> chosen(requests.size());
  for (size_t i = 0; i < requests.size(); i++) {
    const auto& [devices, wanted] = requests[i];
    if (devices.empty()) continue;
    for (const auto& device : devices)
      if (int64_t(chosen[i].size()) < wanted && given.insert(device).second)
        chosen[i].push_back(device);
    if (int64_t(chosen[i].size()) < wanted)
      return exhausted(domain::host_name(domain::HostIndex(i)) + " requests " +
                       std::to_string(wanted) + " GPUs, and " + std::to_string(chosen[i].size()) +
                       " of this machine's " + std::to_string(devices.size()) + " are free");
  }
  return chosen;
}

std::vector<Machine> without_gpus(std::vector<Machine> machines,
                                  const std::vector<std::string>& cards,
                                  const std::set<std::string>& uncleared) {
  const auto is_uncleared = [&](const std::string& device) { return uncleared.contains(device); };
  for (auto& machine : machines) {
    const auto& devices = machine.gpu_devices.empty() ? cards : machine.gpu_devices;
    const auto gone = int64_t(std::count_if(devices.begin(), devices.end(), is_uncleared));
    machine.gpus = std::max<int64_t>(0, machine.gpus - gone);
    std::erase_if(machine.gpu_devices, is_uncleared);
  }
  return machines;
}

Json to_json(const Record& record) {
  Json hosts = Json::array();
  for (const auto& host : record.network.hosts) {
    hosts.push_back({{"link", host.link},
                     {"namespace", host.namespace_file},
                     {"address", networks::to_text(host.address)}});
    if (record.network.encrypted) hosts.back()["under"] = networks::to_text(host.under);
  }
  Json relays = Json::array();
  for (const auto relay : record.network.relays) relays.push_back(networks::to_text(relay));
  return {{"version", kRecordVersion},
          {"attempt", record.attempt.text()},
          {"token", record.token},
          {"bridge", record.network.bridge},
          {"table", record.network.table},
          {"subnet", record.network.subnet.text()},
          {"gateway", networks::to_text(record.network.gateway)},
          {"pool", record.network.pool.text()},
          {"isolated", record.network.isolated},
          {"encrypted", record.network.encrypted},
          {"comment", record.network.comment},
          {"relays", relays},
          {"hosts", hosts},
          {"gpus", record.gpus}};
}

Result<Record> record_from_json(const Json& json) {
  // Members that are added do not make a new version.
  if (const int64_t version = TRY(int_at(json, "version")); version > kRecordVersion)
    return conflict("the attempt was started by a later release: its record is of version " +
                    std::to_string(version) + ", and this server reads up to " +
                    std::to_string(kRecordVersion));
  else if (version < 1)
    return invalid("an attempt's record of version " + std::to_string(version));
  Record record;
  record.attempt = TRY(domain::parse_attempt_id(TRY(string_at(json, "attempt"))));
  record.token = TRY(string_at(json, "token"));
  auto& network = record.network;
  network.bridge = TRY(string_at(json, "bridge"));
  network.table = TRY(string_at(json, "table"));
  network.subnet = TRY(networks::parse_subnet(TRY(string_at(json, "subnet"))));
  network.gateway = TRY(networks::parse_address(TRY(string_at(json, "gateway"))));
  network.pool = TRY(networks::parse_subnet(TRY(string_at(json, "pool"))));
  network.isolated = TRY(bool_at(json, "isolated"));
  if (json.contains("encrypted"))
    network.encrypted = TRY(bool_at(json, "encrypted"));  // former versions' do not
  network.comment = TRY(string_at(json, "comment"));
  for (const char* list : {"relays", "hosts"})
    if (!json.contains(list) || !json[list].is_array())
      return invalid(std::string("an attempt's record lacks its ") + list);
  for (const auto& relay : json["relays"]) {
    if (!relay.is_string()) return invalid("an attempt's record has a relay that is not a string");
    network.relays.push_back(TRY(networks::parse_address(relay.get<std::string>())));
  }
  for (const auto& each : json["hosts"]) {
    auto& host = network.hosts.emplace_back();
    host.link = TRY(string_at(each, "link"));
    host.namespace_file = TRY(string_at(each, "namespace"));
    host.address = TRY(networks::parse_address(TRY(string_at(each, "address"))));
    if (network.encrypted) host.under = TRY(networks::parse_address(TRY(string_at(each, "under"))));
  }
  if (network.hosts.empty()) return invalid("an attempt's record has no host");
  // Records of former versions have none.
  for (const auto& devices : json.value("gpus", Json::array())) {
    if (!devices.is_array()) return invalid("an attempt's record has GPUs that are not a list");
    auto& last = record.gpus.emplace_back();
    for (const auto& device : devices) {
      if (!device.is_string()) return invalid("an attempt's record has a GPU that is not a string");
      last.push_back(device.get<std::string>());
    }
  }
  return record;
}

}  // namespace trainyard::launch

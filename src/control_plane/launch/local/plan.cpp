#include "launch/local/plan.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.hpp"
#include "base/complete_record.hpp"
#include "base/fnv.hpp"
#include "base/plural.hpp"
#include "domain/json_forms.hpp"
#include "domain/role.hpp"
#include "launch/network_forms.hpp"

namespace trainyard::launch {
namespace {

constexpr int kRecordVersion = 1;
constexpr uint64_t kReservedAddresses = 3;  // the network's, the bridge's and the broadcast address
// 13 hosts: small enough for 4,096 gangs in a /16, and large enough for most gangs.
constexpr int kSmallestPrefix = 28;

std::string hex(uint64_t number, int digits) {
  std::string text;
  for (int i = digits - 1; i >= 0; i--) text += "0123456789abcdef"[number >> (4 * i) & 15];
  return text;
}

// The device files of one host.
struct DevicesForm {
  using Value = std::vector<std::string>;
  static Json write(const Value& devices) { return devices; }
  static Result<void> read_into(const Json& json, Value& devices) {
    if (!json.is_array()) return invalid("the GPUs of a host must be a list");
    for (const Json& device : json) {
      if (!device.is_string()) return invalid("a GPU must be a string: its device file");
      devices.push_back(device.get<std::string>());
    }
    return {};
  }
};

constexpr auto kPrivateHost =
    complete(json_record<networks::PrivateHost>("host", [](auto& side, auto& host) {
      side("link", host.link);
      side("namespace", host.namespace_file);
      side("address", host.address, AddressForm());
      side.when(host.under != 0, "under", host.under, AddressForm());
    }));

constexpr auto kAttemptRecord =
    complete(json_record<Record>("record", [](auto& side, auto& record) {
      auto& network = record.network;
      int64_t version = kRecordVersion;
      side("version", version);
      side("attempt", record.attempt, domain::kAttemptIdForm);
      side("token", record.token);
      side("bridge", network.bridge);
      side("table", network.table);
      side("subnet", network.subnet, SubnetForm());
      side("gateway", network.gateway, AddressForm());
      side("pool", network.pool, SubnetForm());
      side("isolated", network.isolated);
      side("encrypted", network.encrypted);
      side("comment", network.comment);
      side("relays", network.relays, AddressForm());
      side("hosts", network.hosts, kPrivateHost);
      side("gpus", record.gpus, DevicesForm());
    }));

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
                     " hosts does not fit into the network pool " + pool.text() +
                     ": set a larger network.pool in the server's config");
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
                   counted(hosts, "host") + ": " + counted(taken.size(), "network") +
                   " in use; wait for jobs to end, or set a larger network.pool in the server's "
                   "config");
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
  // ARNs precede names, names precede patterns, and longer patterns precede shorter ones.
  const auto rank = [](const std::string& role) {
    const auto has = [&](char c) { return role.find(c) != std::string::npos; };
    return std::tuple(has(':'), !has('*'), role.size());
  };
  const std::pair<const std::string, std::vector<networks::EgressRule>>* best = nullptr;
  for (const auto& each : of_roles)
    if (domain::names_role(each.first, role_arn) && (!best || rank(each.first) > rank(best->first)))
      best = &each;
  return best ? &best->second : nullptr;
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

std::string underlay_text(const networks::PrivateNetwork& network) {
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
                       counted(uint64_t(wanted), "GPU") + ", and " +
                       std::to_string(chosen[i].size()) + " of this machine's " +
                       std::to_string(devices.size()) + " are free");
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

Json to_json(const Record& record) { return kAttemptRecord.write(record); }

Result<Record> record_from_json(const Json& json) {
  // Added members do not change the version.
  if (const int64_t version = TRY(int_at(json, "version")); version > kRecordVersion)
    return conflict("the attempt was started by a later release: its record has version " +
                    std::to_string(version) + ", but this server reads versions up to " +
                    std::to_string(kRecordVersion) + "; run the newer release");
  else if (version < 1)
    return invalid("unknown version " + std::to_string(version) + " of an attempt's record");
  Json whole = json;
  // Records of earlier versions lack these members.
  whole.emplace("encrypted", false);
  whole.emplace("gpus", Json::array());
  Record record = TRY(kAttemptRecord.read(whole).in("an attempt's record"));
  for (const networks::PrivateHost& host : record.network.hosts)
    if (record.network.encrypted && host.under == 0)
      return invalid("an attempt's record lacks a host's address under the encrypted network");
  if (record.network.hosts.empty()) return invalid("an attempt's record has no host");
  return record;
}

}  // namespace trainyard::launch

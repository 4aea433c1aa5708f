#include "config/capacity.hpp"

#include <algorithm>

#include "config/principals.hpp"
#include "domain/instance_type.hpp"
#include "domain/limits.hpp"

namespace trainyard::config {
namespace {

// With 2^48 bytes of memory each, the planner's sums over machines fit into 64 bits.
constexpr size_t kMachinesMax = 10'000;
constexpr double kPriceMax = 1e9;  // per instance and hour, in any currency

Result<void> read_quota(Table table, std::vector<domain::InstanceQuota>& quotas) {
  domain::InstanceQuota quota;
  quota.count = -1;
  TRY(table.read_renamed("user", "who", quota.user));
  TRY(table.read("region", quota.region));
  TRY(table.read("instance_type", quota.instance_type));
  TRY(table.read("count", quota.count,
                 {0, domain::kCountedMax, "", ": instances that may be used at once"}));
  TRY(table.nothing_else());
  if (!quota.user.empty() && !is_user(quota.user))
    return table.refused_element("user", quota.user, kPrincipalAccepted);
  if (!domain::find_instance_type(quota.instance_type))
    return table.refused("instance_type", "an instance type, like \"ml.m5.xlarge\"");
  const bool repeated =
      std::any_of(quotas.begin(), quotas.end(), [&](const domain::InstanceQuota& other) {
        return other.user == quota.user && other.region == quota.region &&
               other.instance_type == quota.instance_type;
      });
  if (repeated)
    return invalid(table.name("instance_type") + ": duplicate quota of " +
                   format_text(quota.instance_type) + " for the same user and region: keep one");
  quotas.push_back(std::move(quota));
  return {};
}

std::string offered_text(double most) {
  return "greater than 0, and at most " + format_number(most) + ": what the machine offers to jobs";
}

Result<void> read_machine(Table table, std::vector<launch::Machine>& machines) {
  launch::Machine machine;
  double cpus = 0, memory_gib = 0;
  TRY(table.read("name", machine.name));
  TRY(table.read("cpus", cpus));
  TRY(table.read("memory_gib", memory_gib));
  TRY(table.read("gpus", machine.gpus, {0, domain::kHostGpusMax}));
  TRY(table.read("gpu_devices", machine.gpu_devices));
  TRY(table.read_renamed("topology", "place", machine.topology));
  TRY(table.nothing_else());
  if (machine.name.empty()) return table.refused("name", "a name, which each machine needs");
  // This form of the condition also rejects NaN.
  if (!(cpus > 0 && cpus <= domain::kHostCpusMax))
    return table.refused("cpus", offered_text(domain::kHostCpusMax));
  if (!(memory_gib > 0 && memory_gib <= double(domain::kHostMemoryBytesMax >> 30)))
    return table.refused("memory_gib", offered_text(double(domain::kHostMemoryBytesMax >> 30)));
  if (machines.size() >= kMachinesMax)
    return invalid("machine: the file has more than " + std::to_string(kMachinesMax) +
                   " machines: remove some");
  if (!machine.gpu_devices.empty() && !table.has("gpus"))
    machine.gpus = int64_t(machine.gpu_devices.size());
  if (!machine.gpu_devices.empty() && machine.gpus != int64_t(machine.gpu_devices.size()))
    return invalid(table.name("gpu_devices") + " names " +
                   std::to_string(machine.gpu_devices.size()) + " device files, but gpus is " +
                   std::to_string(machine.gpus) + ": remove gpus, or list each GPU's file");
  for (const auto& device : machine.gpu_devices)
    if (!device.starts_with("/dev/") || device.find(',') != std::string::npos ||
        std::count(machine.gpu_devices.begin(), machine.gpu_devices.end(), device) > 1 ||
        std::any_of(machines.begin(), machines.end(), [&](const auto& other) {
          return std::count(other.gpu_devices.begin(), other.gpu_devices.end(), device) > 0;
        }))
      return table.refused_element("gpu_devices", device,
                                   "a device file below /dev, named once: GPUs are not shared");
  machine.cpus = cpus;
  machine.memory_bytes = int64_t(memory_gib * (1 << 30));
  const bool taken = std::any_of(machines.begin(), machines.end(),
                                 [&](const auto& other) { return other.name == machine.name; });
  if (taken)
    return invalid(table.name("name") + ": two machines are named " + format_text(machine.name) +
                   ": give each a name of its own");
  machines.push_back(machine);
  return {};
}

Result<void> read_prices(Table table, domain::PriceTable& prices) {
  bool list = true;
  std::string currency = prices.currency;
  TRY(table.read("list", list));
  TRY(table.read("currency", currency));
  if (!list) prices = {};
  prices.currency = currency;
  TRY(table.each("instance", [&](Table one) -> Result<void> {
    const Range<double> range{0, kPriceMax, "", ": of one instance and hour"};
    std::string type, region;
    domain::Price price;
    TRY(one.read("type", type));
    TRY(one.read("region", region));
    TRY(one.read("on_demand", price.on_demand, range));
    price.spot = price.on_demand;
    TRY(one.read("spot", price.spot, range));
    TRY(one.nothing_else());
    if (type.empty()) return one.refused("type", "the instance type of this price");
    prices.set(region, type, price);
    return {};
  }));
  return table.nothing_else();
}

}  // namespace

Result<void> read_capacity(Table& root, Config& config) {
  TRY(root.each("machine", [&](Table table) { return read_machine(table, config.machines); }));
  TRY(root.each("quota", [&](Table table) { return read_quota(table, config.quotas); }));
  return root.each("prices", [&](Table table) { return read_prices(table, config.prices); });
}

}  // namespace trainyard::config

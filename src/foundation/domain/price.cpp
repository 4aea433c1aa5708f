#include "domain/price.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace trainyard::domain {
namespace {

constexpr double kSpotPart = 0.3;
constexpr double kFargateCpu = 0.04048, kFargateGib = 0.004445;  // per hour, as published in 2023
constexpr double kSecondsOfHour = 3600;

constexpr std::pair<const char*, double> kListPrices[] = {
    {"ml.t3.medium", 0.05},       {"ml.t3.large", 0.10},       {"ml.t3.xlarge", 0.20},
    {"ml.t3.2xlarge", 0.399},     {"ml.m4.xlarge", 0.24},      {"ml.m4.2xlarge", 0.48},
    {"ml.m4.4xlarge", 0.96},      {"ml.m4.10xlarge", 2.40},    {"ml.m4.16xlarge", 3.84},
    {"ml.m5.large", 0.115},       {"ml.m5.xlarge", 0.23},      {"ml.m5.2xlarge", 0.461},
    {"ml.m5.4xlarge", 0.922},     {"ml.m5.12xlarge", 2.765},   {"ml.m5.24xlarge", 5.53},
    {"ml.c5.large", 0.102},       {"ml.c5.xlarge", 0.204},     {"ml.c5.2xlarge", 0.408},
    {"ml.c5.4xlarge", 0.816},     {"ml.c5.9xlarge", 1.836},    {"ml.c5.18xlarge", 3.672},
    {"ml.r5.large", 0.151},       {"ml.r5.xlarge", 0.302},     {"ml.r5.2xlarge", 0.605},
    {"ml.r5.4xlarge", 1.21},      {"ml.r5.12xlarge", 3.629},   {"ml.r5.24xlarge", 7.258},
    {"ml.g4dn.xlarge", 0.736},    {"ml.g4dn.2xlarge", 0.94},   {"ml.g4dn.4xlarge", 1.505},
    {"ml.g4dn.8xlarge", 2.72},    {"ml.g4dn.12xlarge", 4.89},  {"ml.g4dn.16xlarge", 5.44},
    {"ml.g5.xlarge", 1.408},      {"ml.g5.2xlarge", 1.515},    {"ml.g5.4xlarge", 2.03},
    {"ml.g5.8xlarge", 3.06},      {"ml.g5.12xlarge", 7.09},    {"ml.g5.16xlarge", 5.12},
    {"ml.g5.24xlarge", 10.18},    {"ml.g5.48xlarge", 20.36},   {"ml.p2.xlarge", 1.125},
    {"ml.p3.2xlarge", 3.825},     {"ml.p3.8xlarge", 14.688},   {"ml.p3.16xlarge", 28.152},
    {"ml.p3dn.24xlarge", 35.894}, {"ml.p4d.24xlarge", 37.688}, {"ml.p5.48xlarge", 113.068},
};

// Returns the charge in millionths, rounded to the nearest; half a millionth is rounded up.
int64_t charge(double per_hour, uint32_t instances, int64_t seconds) {
  return std::llround(per_hour * double(instances) * double(seconds) / kSecondsOfHour *
                      double(kMillionths));
}

}  // namespace

void PriceTable::set(const std::string& region, const std::string& instance_type, Price price) {
  prices_[region][instance_type] = price;
}

std::optional<Price> PriceTable::find(const std::string& region,
                                      const std::string& instance_type) const {
  for (const auto& name : {region, std::string()}) {
    const auto of_region = prices_.find(name);
    if (of_region == prices_.end()) continue;
    if (const auto found = of_region->second.find(instance_type); found != of_region->second.end())
      return found->second;
  }
  return {};
}

PriceTable list_prices_of_2023() {
  PriceTable table;
  for (const auto& [type, on_demand] : kListPrices)
    table.set("", type, {on_demand, on_demand * kSpotPart});
  table.set("", std::string(kCpuPrice), {kFargateCpu, kFargateCpu * kSpotPart});
  table.set("", std::string(kMemoryPrice), {kFargateGib, kFargateGib * kSpotPart});
  return table;
}

std::optional<Price> PriceTable::of(const std::string& region, const InstanceGroup& group) const {
  if (const auto price = find(region, group.instance_type); price || !group.share) return price;
  Price sum;
  const std::pair<std::string_view, double> parts[] = {
      {kCpuPrice, group.share->cpus},
      {kMemoryPrice, double(group.share->memory_bytes) / double(int64_t(1) << 30)},
      {kGpuPrice, double(group.share->gpus)},
  };
  for (const auto& [name, amount] : parts) {
    if (amount <= 0) continue;
    const auto price = find(region, std::string(name));
    if (!price) return {};
    sum.on_demand += price->on_demand * amount;
    sum.spot += price->spot * amount;
  }
  return sum;
}

void Cost::add(const Cost& more) {
  millionths += more.millionths;
  on_demand_millionths += more.on_demand_millionths;
  for (const std::string& type : more.unpriced)
    if (std::ranges::find(unpriced, type) == unpriced.end()) unpriced.push_back(type);
}

Cost cost_of(const PriceTable& prices, const std::string& region,
             const std::vector<InstanceGroup>& groups, bool spot, int64_t training_seconds,
             int64_t billable_seconds) {
  Cost cost;
  for (const InstanceGroup& group : groups) {
    const auto price = prices.of(region, group);
    if (!price) {
      if (std::find(cost.unpriced.begin(), cost.unpriced.end(), group.instance_type) ==
          cost.unpriced.end())
        cost.unpriced.push_back(group.instance_type);
      continue;
    }
    cost.millionths += charge(spot ? price->spot : price->on_demand, group.count, billable_seconds);
    cost.on_demand_millionths += charge(price->on_demand, group.count, training_seconds);
  }
  return cost;
}

std::string money_text(int64_t millionths) {
  const double amount = double(millionths) / double(kMillionths);
  const int64_t size = std::abs(millionths);
  const int decimals = size == 0 || size >= 100'000 ? 2
                       : size >= 10'000             ? 3
                       : size >= 1'000              ? 4
                                                    : 6;
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, amount);
  return text;
}

}  // namespace trainyard::domain

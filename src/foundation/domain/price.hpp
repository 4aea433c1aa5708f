// Computes the cost of jobs from the prices of instances. Prices are per region and instance type.
// A job is charged for the seconds that each of its hosts ran, at the spot price if it may be
// interrupted.
//
// A host that requested a share of a machine instead of an instance type is charged for that share,
// at the prices of the types "vCPU", "GiB" and "GPU".
//
// Amounts are integers in millionths of the currency, so that sums over many jobs are exact.
//
// Threads: plain values, pure functions. Errors: none; instance types without a price are listed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::domain {

struct Price {
  double on_demand = 0;  // per instance and hour
  double spot = 0;
};

class PriceTable {
 public:
  // Sets a price; region "": all regions. A price for a region takes precedence over one for all
  // regions.
  void set(const std::string& region, const std::string& instance_type, Price price);
  std::optional<Price> find(const std::string& region, const std::string& instance_type) const;

  // Returns the price of one host of the group; nullopt if its type, or a part of its share, has no
  // price.
  std::optional<Price> of(const std::string& region, const InstanceGroup& group) const;

  std::string currency = "USD";

 private:
  std::map<std::string, std::map<std::string, Price>> prices_;  // region -> type
};

inline constexpr std::string_view kCpuPrice = "vCPU", kMemoryPrice = "GiB", kGpuPrice = "GPU";

// Returns AWS's list prices of 2023, for all regions: of SageMaker training in us-east-1 and, for
// shares, of Fargate, which has no GPUs. Operators can set other prices. A spot price is three
// tenths of the price on demand, because AWS advertises savings of 60 to 90 per cent.
PriceTable list_prices_of_2023();

inline constexpr int64_t kMillionths = 1'000'000;

struct Cost {
  int64_t millionths = 0;             // the amount to be paid
  int64_t on_demand_millionths = 0;   // the cost of the same training without spot
  std::vector<std::string> unpriced;  // instance types without a price, which are not in the sums
  void add(const Cost& more);
  // Returns the part of the on-demand cost that spot saved: 0 to 1.
  double saved() const {
    return on_demand_millionths <= 0 ? 0 : 1.0 - double(millionths) / double(on_demand_millionths);
  }
};

// Computes the cost of a job. Both times are per host: `billable_seconds` are charged;
// `training_seconds` would be charged on demand.
Cost cost_of(const PriceTable& prices, const std::string& region,
             const std::vector<InstanceGroup>& groups, bool spot, int64_t training_seconds,
             int64_t billable_seconds);

// Formats "12.34", "0.0042": with two decimals, or more for small amounts.
std::string money_text(int64_t millionths);

}  // namespace trainyard::domain

// Computes the cost of jobs from the prices of instances. Prices are per region and instance type; a job is charged for the
// seconds that each of its hosts ran, at the spot price where it may be interrupted.
//
// A host that requested a share of a machine instead of an instance type is charged for that share, by the prices of
// the types "vCPU", "GiB" and "GPU".
//
// Amounts are whole millionths of the currency, so that sums of many jobs are exact.
//
// Threads: plain values, pure functions. Errors: none; instances without a price are counted and named.
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
  double on_demand = 0;  // of one instance and hour
  double spot = 0;
};

class PriceTable {
 public:
  // "": no region in particular. A price of the region goes before one of none.
  void set(const std::string& region, const std::string& instance_type, Price price);
  std::optional<Price> find(const std::string& region, const std::string& instance_type) const;

  // Of one host of the group. Nothing: its type, or a part of its share, has none.
  std::optional<Price> of(const std::string& region, const InstanceGroup& group) const;

  std::string currency = "USD";

 private:
  std::map<std::string, std::map<std::string, Price>> prices_;  // region -> type
};

inline constexpr std::string_view kCpuPrice = "vCPU", kMemoryPrice = "GiB", kGpuPrice = "GPU";

// AWS's list prices of SageMaker training in us-east-1, and Fargate's of shares (which has no GPUs), as they were published in 2023: for every region, since who
// owns the hardware decides anyway. Spot is put at three tenths, in the middle of the 60 to 90 per cent that AWS
// advertises as savings.
PriceTable list_prices_of_2023();

inline constexpr int64_t kMillionths = 1'000'000;

struct Cost {
  int64_t millionths = 0;             // what is to be paid
  int64_t on_demand_millionths = 0;   // what the same training would cost without spot
  std::vector<std::string> unpriced;  // instance types without a price: not in the sums
  void add(const Cost& more);
  // Of what would have been paid, the part that spot saved: 0 to 1.
  double saved() const {
    return on_demand_millionths <= 0 ? 0 : 1.0 - double(millionths) / double(on_demand_millionths);
  }
};

// `billable_seconds` are paid for, `training_seconds` is how long it took: of each host alike.
Cost cost_of(const PriceTable& prices, const std::string& region, const std::vector<InstanceGroup>& groups,
             bool spot, int64_t training_seconds, int64_t billable_seconds);

// "12.34", "0.0042": two decimals, or as many as show two digits.
std::string money_text(int64_t millionths);

}  // namespace trainyard::domain

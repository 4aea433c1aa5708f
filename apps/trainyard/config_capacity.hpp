// Reads what a config says of capacity: machines, quotas of instances, prices. Part of config.hpp.
//
// Threads: confined to one. Errors: invalid, naming the member and what it may be.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "domain/price.hpp"
#include "domain/service_quota.hpp"
#include "launch/launcher.hpp"
#include "trainyard/config_table.hpp"

namespace trainyard::apps {

// Each reads one table, and adds it to those before.
Result<void> read_quota(Table table, std::vector<domain::InstanceQuota>& quotas);
Result<void> read_machine(Table table, std::vector<launch::Machine>& machines);
// [prices], whole.
Result<void> read_prices(Table table, domain::PriceTable& prices);

}  // namespace trainyard::apps

// Registers the operations of Amazon SNS.
//
// Threads: called before requests arrive. Lifetime: settings and services outlive the table.
#pragma once

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api::sns {

void add_operations(OperationTable& table, const Settings& settings, const Services& services);

}  // namespace trainyard::api::sns

// Registers the operations of EC2.
//
// Threads: called before requests arrive. Lifetime: settings and services outlive the table.
#pragma once

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api::ec2 {

void add_operations(OperationTable& table, const Settings& settings, const Services& services);

}  // namespace trainyard::api::ec2

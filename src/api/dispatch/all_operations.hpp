// Lists the operations of every service.
//
// Lifetime: the services outlive the table.
#pragma once

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api {

// Makes the table, without CloudTrail's operations, which need the audit log (audit/audit.hpp).
OperationTable all_operations(const Settings& settings, const Services& services);

}  // namespace trainyard::api

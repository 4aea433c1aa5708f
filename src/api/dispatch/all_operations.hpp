// Makes the table of the operations of all services.
//
// Lifetime: the services outlive the table.
#pragma once

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api {

// CloudTrail's operations are left out: they need the audit log (audit/audit.hpp).
OperationTable all_operations(const Settings& settings, const Services& services);

}  // namespace trainyard::api

// The operations of Service Quotas.
//
// Lifetime: as operations.hpp.
#pragma once

#include "api/api.hpp"
#include "api/operations/table.hpp"

namespace trainyard::api {

void add_service_quotas(OperationTable& table, const Settings& settings);

}  // namespace trainyard::api

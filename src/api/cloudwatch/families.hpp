// Registers CloudWatch's operations by subject. operations.hpp registers all of them.
//
// Threads: called before requests arrive. Lifetime: settings and services outlive the table.
#pragma once

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api::cloudwatch {

void add_metric_operations(OperationTable& table, const Services& services);
void add_metric_data_operations(OperationTable& table, const Services& services);
void add_alarm_operations(OperationTable& table, const Settings& settings,
                          const Services& services);
void add_dashboard_operations(OperationTable& table, const Services& services);
void add_insight_rule_operations(OperationTable& table, const Settings& settings,
                                 const Services& services);
void add_tag_operations(OperationTable& table, const Services& services);

}  // namespace trainyard::api::cloudwatch

#include "cloudwatch/operations.hpp"

#include "cloudwatch/families.hpp"

namespace trainyard::api::cloudwatch {

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_metric_operations(table, services);
  add_metric_data_operations(table, services);
  add_alarm_operations(table, settings, services);
  add_dashboard_operations(table, services);
  add_insight_rule_operations(table, settings, services);
  add_tag_operations(table, services);
}

}  // namespace trainyard::api::cloudwatch

#include "events/operations.hpp"

#include "events/common.hpp"

namespace trainyard::api::events {

void add_operations(OperationTable& table, const Settings&, const Services& services) {
  add_rules(table, services);
  add_targets(table, services);
  add_put_events(table, services);
}

}  // namespace trainyard::api::events

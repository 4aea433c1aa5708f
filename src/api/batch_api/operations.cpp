#include "batch_api/operations.hpp"

#include "batch_api/requests.hpp"

namespace trainyard::api::batch_api {

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_catalog(table, settings, services);
  add_definitions(table, settings, services);
  add_tags(table, settings, services);
  add_jobs(table, settings, services);
  add_policies(table, settings, services);
  add_consumables(table, settings, services);
  add_service(table, settings, services);
  add_snapshot(table, settings, services);
}

}  // namespace trainyard::api::batch_api

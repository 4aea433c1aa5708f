#include "fsx/operations.hpp"

#include "fsx/common.hpp"

namespace trainyard::api::fsx {

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_file_systems(table, settings, services);
  add_associations(table, services);
  add_tasks(table, services);
  add_tag_operations(table, services);
}

}  // namespace trainyard::api::fsx

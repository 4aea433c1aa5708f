#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_job_reports(table, settings, services);
  add_explanations(table, settings, services);
  add_time_reports(table, settings, services);
  add_timelines(table, settings, services);
  add_interruptions(table, settings, services);
  add_campaigns(table, settings, services);
  add_server(table, settings, services);
  add_events(table, services);
  add_machines(table, settings, services);
  add_console(table, settings, services);
  add_previews(table, settings, services);
  add_job_templates(table, settings, services);
  add_replays(table, settings, services);
}

}  // namespace trainyard::api::trainyard_api

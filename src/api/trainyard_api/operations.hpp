// Registers the operations of Trainyard's own API.
//
// Threads: called before requests arrive. Lifetime: settings and services outlive the table.
#pragma once

#include <optional>
#include <string>

#include "operations/services.hpp"
#include "operations/table.hpp"

namespace trainyard::api::trainyard_api {

void add_operations(OperationTable& table, const Settings& settings, const Services& services);

// Sets a member of a response, unless the text is empty.
inline void set_unless_empty(std::optional<std::string>& member, const std::string& text) {
  if (!text.empty()) member = text;
}

// Each registers the operations on one subject.
void add_campaigns(OperationTable& table, const Settings& settings, const Services& services);
void add_console(OperationTable& table, const Settings& settings, const Services& services);
void add_events(OperationTable& table, const Services& services);
void add_explanations(OperationTable& table, const Settings& settings, const Services& services);
void add_interruptions(OperationTable& table, const Settings& settings, const Services& services);
void add_job_templates(OperationTable& table, const Settings& settings, const Services& services);
void add_machines(OperationTable& table, const Settings& settings, const Services& services);
void add_previews(OperationTable& table, const Settings& settings, const Services& services);
void add_replays(OperationTable& table, const Settings& settings, const Services& services);
void add_time_reports(OperationTable& table, const Settings& settings, const Services& services);
void add_timelines(OperationTable& table, const Settings& settings, const Services& services);
void add_server(OperationTable& table, const Settings& settings, const Services& services);
void add_job_reports(OperationTable& table, const Settings& settings, const Services& services);

}  // namespace trainyard::api::trainyard_api

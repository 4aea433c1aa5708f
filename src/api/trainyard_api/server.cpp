// Implements DescribeServer, which reports the server's status.
#include <map>

#include "domain/job_state.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

std::vector<own::JobStateCount> count_jobs(control::Control& control) {
  std::map<std::string_view, int64_t> counts;
  for (const auto& job : control.live_jobs()) counts[domain::to_string(job->state)]++;
  std::vector<own::JobStateCount> out;
  for (const auto& [state, count] : counts) out.push_back({std::string(state), count});
  return out;
}

own::DescribeServerResponse to_shape(const Settings& settings, const Services& services,
                                     const ServerStatus& status) {
  own::DescribeServerResponse out;
  out.account = settings.account;
  out.endpoint = status.endpoint;
  out.start_time = status.started;
  out.data_directory = status.data_directory;
  set_unless_empty(out.config_file, status.config_file);
  set_unless_empty(out.log_file, status.log_file);
  out.disk_free_bytes = int64_t(status.disk_free_bytes);
  out.disk_size_bytes = int64_t(status.disk_size_bytes);
  out.disk_reserve_bytes = int64_t(status.disk_reserve_bytes);
  out.ledger_bytes = int64_t(status.ledger_bytes);
  out.jobs = count_jobs(services.control);
  out.agents = int64_t(status.agents);
  out.certificate_names = status.certificate_names;
  out.certificate_end_time = status.certificate_ends;
  out.errors.emplace();
  for (const ServerError& error : status.errors) out.errors->push_back({error.at, error.message});
  out.warnings = status.warnings;
  return out;
}

}  // namespace

void add_server(OperationTable& table, const Settings& settings, const Services& services) {
  if (!services.server_status) return;
  table.add<own::DescribeServer>([&](const Context&, const own::DescribeServerRequest&) {
    return Outcome<own::DescribeServerResponse>(
        to_shape(settings, services, services.server_status()));
  });
}

}  // namespace trainyard::api::trainyard_api

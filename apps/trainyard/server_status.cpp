#include "trainyard/server_status.hpp"

#include <filesystem>
#include <system_error>

#include "net/certificates.hpp"
#include "trainyard/identities.hpp"

namespace trainyard::apps {
namespace {

// With the log of changes that SQLite has not moved into the file yet.
uint64_t ledger_bytes(const std::string& data_directory) {
  uint64_t sum = 0;
  for (const char* name : {"/ledger.db", "/ledger.db-wal"}) {
    std::error_code absent;
    const auto bytes = std::filesystem::file_size(data_directory + name, absent);
    if (!absent) sum += bytes;
  }
  return sum;
}

}  // namespace

api::ServerStatus server_status_of(const ServerStatusSources& sources) {
  api::ServerStatus status;
  status.endpoint = sources.endpoint;
  status.started = sources.started;
  status.data_directory = sources.data_directory;
  status.config_file = sources.config_file;
  status.log_file = sources.log_file;
  std::error_code unknown;
  const auto space = std::filesystem::space(sources.data_directory, unknown);
  if (!unknown) {
    status.disk_free_bytes = space.available;
    status.disk_size_bytes = space.capacity;
  }
  status.disk_reserve_bytes = sources.disk_reserve_bytes;
  status.ledger_bytes = ledger_bytes(sources.data_directory);
  status.agents = sources.agents.linked();
  if (const auto certificate = net::read_certificate(sources.data_directory + "/tls/server.pem")) {
    status.certificate_names = certificate->names;
    status.certificate_ends = certificate->ends;
  }
  status.errors = sources.log.errors();
  status.warnings = config_warnings(*sources.settings.all(), *sources.identities.snapshot());
  return status;
}

std::vector<api::ServerMachine> server_machines_of(const std::vector<launch::Machine>& machines) {
  std::vector<api::ServerMachine> out;
  for (const launch::Machine& machine : machines)
    out.push_back(
        {machine.name, machine.cpus, machine.memory_bytes, machine.gpus, machine.topology});
  return out;
}

}  // namespace trainyard::apps

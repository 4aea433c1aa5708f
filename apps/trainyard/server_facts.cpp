#include "trainyard/server_facts.hpp"

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

api::ServerFacts facts_of(const FactSources& sources) {
  api::ServerFacts facts;
  facts.endpoint = sources.endpoint;
  facts.started = sources.started;
  facts.data_directory = sources.data_directory;
  facts.config_file = sources.config_file;
  facts.log_file = sources.log_file;
  std::error_code unknown;
  const auto space = std::filesystem::space(sources.data_directory, unknown);
  if (!unknown) {
    facts.disk_free_bytes = space.available;
    facts.disk_size_bytes = space.capacity;
  }
  facts.disk_reserve_bytes = sources.disk_reserve_bytes;
  facts.ledger_bytes = ledger_bytes(sources.data_directory);
  facts.agents = sources.agents.linked();
  if (const auto certificate = net::read_certificate(sources.data_directory + "/tls/server.pem")) {
    facts.certificate_names = certificate->names;
    facts.certificate_ends = certificate->ends;
  }
  facts.errors = sources.log.errors();
  facts.warnings = config_warnings(*sources.settings.all(), *sources.identities.snapshot());
  return facts;
}

std::vector<api::ServerMachine> server_machines_of(const std::vector<launch::Machine>& machines) {
  std::vector<api::ServerMachine> out;
  for (const launch::Machine& machine : machines)
    out.push_back(
        {machine.name, machine.cpus, machine.memory_bytes, machine.gpus, machine.topology});
  return out;
}

}  // namespace trainyard::apps

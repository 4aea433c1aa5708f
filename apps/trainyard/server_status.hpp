// Collects the server's status for `trainyard status`.
//
// Threads: callable from anywhere. Lifetime: all sources outlive the calls. Errors: none; a
// value that cannot be read is 0 or empty.
#pragma once

#include <string>

#include "base/time.hpp"
#include "gateway/agents.hpp"
#include "operations/identity_store.hpp"
#include "operations/server_status.hpp"
#include "trainyard/serve_settings.hpp"
#include "trainyard/server_log.hpp"

namespace trainyard::apps {

struct ServerStatusSources {
  const ServerLog& log;
  gateway::Agents& agents;
  const api::IdentityStore& identities;
  const ReloadableSettings& settings;
  std::string endpoint;
  Instant started;
  std::string data_directory;
  std::string config_file;
  std::string log_file;
  uint64_t disk_reserve_bytes = 0;
};

api::ServerStatus server_status_of(const ServerStatusSources& sources);

std::vector<api::ServerMachine> server_machines_of(const std::vector<launch::Machine>& machines);

}  // namespace trainyard::apps

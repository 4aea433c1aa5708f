// Makes the scripts with which users reach the server: the output of `trainyard env`, and the file
// that `trainyard user add` writes.
//
// Threads: confined to the main thread. Errors: not_found (user, key, server), invalid (endpoint),
// denied (the data directory is another Unix user's); those of files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "client/client.hpp"
#include "policy/principal_settings.hpp"

namespace trainyard::apps {

struct EnvironmentRequest {
  std::string data_directory;
  std::string user;      // "": the owner
  std::string endpoint;  // by which the user reaches the server; "" = this machine's
};

// Returns the exports of `trainyard env`. With a user or an endpoint they need no file of the data
// directory, since other users cannot read it. The key is read from the data directory, and from
// the config that its server was started with, so only a process that may read both gets it.
Result<std::string> environment_of(const EnvironmentRequest& request);

// Returns the script for a key that the API has just made. `api`: the settings with which this
// process reaches the server; the script contains their certificate authority.
Result<std::string> hand_over(const client::Settings& api, const std::string& objects_endpoint,
                              const policy::ConfiguredKey& key, const std::string& endpoint);

}  // namespace trainyard::apps

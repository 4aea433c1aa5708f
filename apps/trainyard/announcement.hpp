// Formats the text that `trainyard serve` prints when it is ready: the addresses on which it
// listens, and the commands that clients need.
//
// Threads: pure.
#pragma once

#include <string>

#include "config/config.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {

// Announces the names of the certificate if the server listens on all addresses.
std::string announcement(const ServerRecord& record, const Listening& listening,
                         const std::string& data_directory, const config::Config& config);

}  // namespace trainyard::apps

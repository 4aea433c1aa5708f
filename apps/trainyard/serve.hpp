// Implements `trainyard serve`: opens the data directory, wires the modules, and runs until SIGTERM
// or SIGINT. Jobs continue without a server; the next server finds them.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

struct ServeOptions {
  std::string data_directory;
  std::string config_file;  // "": none
  std::string listen;       // "": as in the config
  std::string log_file;     // "": as in the config
};

Result<void> serve(const ServeOptions& options);

}  // namespace trainyard::apps

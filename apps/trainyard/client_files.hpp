// Writes the files below clients/ of the data directory, with which unmodified AWS clients find the
// server.
//
// Threads: one at a time. Errors: those of writing files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// `reachable`: the host and port by which clients reach the server.
Result<void> write_client_files(const DataDirectory& data, const std::string& reachable);

}  // namespace trainyard::apps

// ServerStatus has what DescribeServer reports about the server. ServerMachine is a machine on
// which the server places hosts.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace trainyard::api {

struct ServerError {
  Instant at;
  std::string message;
};

struct ServerMachine {
  std::string name;
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
  std::string topology;  // "room-1/rack-7"; "" = unknown
};

struct ServerStatus {
  std::string endpoint;
  Instant started;
  std::string data_directory;
  std::string config_file;  // "" = none
  std::string log_file;     // "" = standard error
  uint64_t disk_free_bytes = 0, disk_size_bytes = 0, disk_reserve_bytes = 0;
  uint64_t ledger_bytes = 0;
  size_t agents = 0;
  std::vector<std::string> certificate_names;
  Instant certificate_ends;
  std::vector<ServerError> errors;  // the oldest first
  std::vector<std::string> warnings;
};

}  // namespace trainyard::api

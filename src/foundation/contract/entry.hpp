// Passes values from the agent to entry, the program that it mounts into images for script mode:
// the paths of both in the container, and a small file that entry reads and removes before any
// process of the user starts.
//
// Threads: pure functions. Errors: invalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::contract {

inline constexpr std::string_view kEntryInside = "/opt/trainyard/entry";  // the program, read-only
// followed by the program to start
inline constexpr std::string_view kEntryInit = "--init";
// a folder that the job may write
inline constexpr std::string_view kEntryFolder = "/opt/trainyard/told";
inline constexpr std::string_view kEntryFile = "/opt/trainyard/told/host.json";

// vCPU of one host; beyond all machines.
inline constexpr double kEntryCpusMax = 1 << 20;

struct EntryConfig {
  std::string gang_secret;  // by which the hosts of one attempt authenticate each other
  double cpus = 0;          // the host's share; 0: no limit
};

std::string write_entry_config(const EntryConfig& entry_config);
Result<EntryConfig> read_entry_config(std::string_view json);

}  // namespace trainyard::contract

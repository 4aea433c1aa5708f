// Defines how the agent passes values to entry, the program that it mounts into images for script
// mode: a small file, which entry reads and removes before any process of the user starts. Also
// defines the paths of file and program in the container.
//
// Threads: pure functions. Errors: invalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::contract {

inline constexpr std::string_view kEntryInside = "/opt/trainyard/entry";  // the program, read-only
// the option of entry that is followed by the program to start
inline constexpr std::string_view kEntryInit = "--init";
// a directory that the job may write
inline constexpr std::string_view kEntryFolder = "/opt/trainyard/told";
inline constexpr std::string_view kEntryFile = "/opt/trainyard/told/host.json";

// limit of the vCPUs of one host; more than any machine has
inline constexpr double kEntryCpusMax = 1 << 20;

struct EntryConfig {
  std::string gang_secret;  // with which the hosts of one attempt authenticate each other
  double cpus = 0;          // vCPUs of the host's share; 0: no limit
};

std::string write_entry_config(const EntryConfig& entry_config);
Result<EntryConfig> read_entry_config(std::string_view json);

}  // namespace trainyard::contract

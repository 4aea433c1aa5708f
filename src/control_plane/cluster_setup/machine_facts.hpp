// MachineFacts tells what an inspection found on a machine: its hardware, its addresses, and what
// is installed, configured and running there.
//
// The inspection is a shell script (scripts.hpp) that prints a line per fact. A machine that is not
// ours yet writes these lines: each number, name and path in them is checked, and they have limits.
//
// Threads: pure functions. Errors: corrupt, naming the line; exhausted, past a limit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::cluster_setup {

// An inspection prints some kilobytes, and the cluster's record with a line for each machine.
inline constexpr size_t kInspectionBytesMax = 1 << 20;
inline constexpr size_t kFactsMax = 1024;          // lines; a machine with 16 GPUs prints about 80
inline constexpr int64_t kCpusMax = 65'535;        // the limit of Slurm
inline constexpr int64_t kMemoryMibMax = 1 << 30;  // a pebibyte
inline constexpr int64_t kGpusMax = 64;            // limit of one machine

struct Gpu {
  int64_t minor = 0;  // the number in the name of its device file: /dev/nvidia0
  std::string type;   // "nvidia_a100-sxm4-80gb", as Slurm writes it; "" = unknown
  bool operator==(const Gpu&) const = default;
};

// A file that `trainyard cluster` wrote.
struct WrittenFile {
  std::string digest;  // SHA-256 of what was written, in hex
  std::string saved;   // that of the file that was there before; "" = there was none
  bool operator==(const WrittenFile&) const = default;
};

enum class ServiceState { absent, stopped, running };

struct MachineFacts {
  std::string hostname;  // without domain; it becomes the node's name
  std::string system;    // "debian 12": ID and VERSION_ID of /etc/os-release
  bool systemd = false;  // else services start by the scripts of /etc/init.d
  int64_t cpus = 0;      // processors that are online
  int64_t memory_mib = 0;
  std::vector<Gpu> gpus;               // by minor number
  std::vector<std::string> addresses;  // IPv4; that of the default route first
  std::string reached_at;              // the machine's address of the ssh connection; "" = no ssh
  std::string reached_from;            // the other end of that connection
  int64_t seconds = 0;                 // its clock, since 1970
  std::map<std::string, std::string> packages;  // installed ones that nodes need -> version
  std::map<std::string, std::string> files;     // existing ones that are written -> SHA-256
  std::map<std::string, WrittenFile> written;   // by path
  std::map<std::string, ServiceState> services;
  std::vector<std::string> pending;  // services whose files changed since their last start
  std::string member;                // "CLUSTER CONTROLLER", that the machine is part of
  std::string record;                // the cluster's, as JSON, on its controller
};

// Reads what the script of an inspection printed. Lines before its first one (a greeting of the
// login shell) are ignored.
Result<MachineFacts> read_machine_facts(std::string_view output);

// Turns the driver's name of a GPU into the type that Slurm uses: "NVIDIA A100" -> "nvidia_a100".
std::string gpu_type_of(std::string_view model);

}  // namespace trainyard::cluster_setup

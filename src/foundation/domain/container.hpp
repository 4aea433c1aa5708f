// Describes the program that the hosts of a group run, and the options of their containers:
// directories, limits and devices. Only jobs in queues may set these options, for each group of
// hosts.
//
// Threads: plain values. Units: bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::domain {

enum class VolumeKind {
  shared,  // a directory of the config: in `file_systems` by its id, in `volumes` by its path
  own,     // an empty directory of this host, which is removed with the host
  memory,  // a tmpfs
};

// A mount of a container. Two volumes of one kind and name are the same directory.
struct Volume {
  VolumeKind kind = VolumeKind::own;
  // shared: its name in the config, "fs-0123" or "/fsx"; own: the user's name for it
  std::string name;
  // shared: the path below that directory, without slashes at its ends; "": the whole directory
  std::string path;
  std::string destination;  // absolute path in the container
  bool read_only = false;
  int64_t bytes = 0;  // memory: its size
};

// A limit of setrlimit() for the container's processes: "nofile", "memlock". UINT64_MAX: unlimited.
struct ProcessLimit {
  std::string name;
  uint64_t soft = 0, hard = 0;
};
// Returns true for the name of a limit of setrlimit(), in lower case.
bool is_process_limit(std::string_view name);

// The options of a container in addition to its program and its share of the machine.
struct ContainerOptions {
  std::vector<Volume> volumes;
  std::vector<ProcessLimit> limits;
  // files below /dev, at the same path in the container
  std::vector<std::string> devices;
  std::optional<int64_t> shared_memory_bytes;  // size of /dev/shm; unset: the default
  std::string user;                            // "1000", "nobody:users"; "": the user of the image
  bool read_only_root = false;
  // true: the program is started by an init process, which forwards signals and reaps orphans;
  // unset: the same, unless the program is itself an init.
  std::optional<bool> init;
  std::string log_group;   // "": the default
  std::string log_prefix;  // prefix of the name of its log stream; "": the default
};

// The program that a host runs.
struct Program {
  std::string image;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

Json to_json(const ContainerOptions&);
Json to_json(const Program&);
Result<ContainerOptions> container_options_from_json(const Json&);
Result<Program> program_from_json(const Json&);

}  // namespace trainyard::domain

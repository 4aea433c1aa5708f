// Describes what the hosts of a group run, and the options of their containers, where these differ between the hosts of a
// job: jobs in queues may have them, and their users may name directories, limits and devices.
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
  shared,  // a directory of the config: of `file_systems` by its id, of `volumes` by its path
  own,     // an empty directory of this host, gone with it
  memory,  // a tmpfs
};

// Something that a container finds at a path. Two of one kind and name are the same directory.
struct Volume {
  VolumeKind kind = VolumeKind::own;
  std::string name;         // shared: the config's name of it, "fs-0123" or "/fsx"; own: as its user calls it
  std::string path;         // shared: below that directory, without slashes at its ends; "" is all of it
  std::string destination;  // absolute, inside
  bool read_only = false;
  int64_t bytes = 0;  // memory: its size
};

// A limit of the container's processes, as setrlimit() has it: "nofile", "memlock"; UINT64_MAX is none.
struct ProcessLimit {
  std::string name;
  uint64_t soft = 0, hard = 0;
};
// Of setrlimit(), in small letters.
bool is_process_limit(std::string_view name);

// The options of a container in addition to its program and its share of the machine.
struct ContainerOptions {
  std::vector<Volume> volumes;
  std::vector<ProcessLimit> limits;
  std::vector<std::string> devices;            // files below /dev of the machine, at the same place inside
  std::optional<int64_t> shared_memory_bytes;  // of /dev/shm; nothing: as usual
  std::string user;                            // "1000", "nobody:users"; "": the image's
  bool read_only_root = false;
  bool init = false;       // a first process that passes signals on and reaps, with the program as its child
  std::string log_group;   // "": the usual one
  std::string log_prefix;  // of its log stream's name; "": the usual one
};

// What a host runs.
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

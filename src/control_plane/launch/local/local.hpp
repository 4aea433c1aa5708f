// The launcher of this machine: gangs are namespaces behind a bridge, one detached agent per host.
//
// Its records are in DATA/attempts/ATTEMPT, and it finds what exists on the machine by name, so
// a server killed at any instant continues where it was:
//
//   launch.json    written before anything is made: names and addresses of all that will be
//   0/ 1/ ..       one directory a host, the agent's own; the launcher puts there
//     order.json   what the agent is told (0600)
//     hosts        the start of its /etc/hosts
//     agent.json   which process the agent is: written once it was started
//     agent.log    its standard streams
//     left         made by the agent as its last act: all that it did is undone
//
// An agent is started as
//   trainyard-agent --order FILE --directory DIR --network-namespace FILE --address ADDRESS
//       --host-table FILE [--devices FILE,..]
// with kAttemptVariable naming its attempt's directory and kHostVariable its own: its children have
// them too, so whatever it leaves behind is found. On its host's lo the address 169.254.170.2 is
// ready for its relay to listen on.
//
// GPUs are handed out whole, by device file; the record says which host has which. What a gang
// leaves is removed at once, except for its network (reaper.hpp removes it); record and
// addresses stay until it is gone.
//
// A record that cannot be read when the server starts, on a failing disk, is read again at each
// list(). Until then its agents run on; list() shows them under the attempt of their directory
// without a token, and ensure() and remove() of that attempt are unavailable, as are GPUs, whose
// owners are unknown.
//
// A gang whose start was interrupted by our own death is completed by ensure(): from nothing when
// no agent had been started, else by starting the missing ones. Until then list() shows those that
// were started.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "containers/rootless_sandbox.hpp"
#include "launch/launcher.hpp"
#include "networks/egress.hpp"

namespace trainyard::launch {

inline constexpr const char* kAttemptVariable = "TRAINYARD_ATTEMPT_DIRECTORY";
inline constexpr const char* kHostVariable = "TRAINYARD_HOST_DIRECTORY";
// The directory in which agents keep unpacked images, shared by all of a server's: DATA/images.
inline constexpr const char* kImagesVariable = "TRAINYARD_IMAGES_DIRECTORY";
// The logins of registries and the directories of OCI layouts (domain/image_sources.hpp), which the
// server writes.
inline constexpr const char* kImageSourcesVariable = "TRAINYARD_IMAGE_SOURCES";
inline std::string image_sources_file(const std::string& data_directory) {
  return data_directory + "/image-sources.json";
}
// The directory in which agents keep the state of GPUs between jobs (containers/gpu_memory.hpp):
// DATA/gpus.
// Unset: nothing is cleared.
inline constexpr const char* kGpusVariable = "TRAINYARD_GPUS_DIRECTORY";
inline std::string gpus_directory(const std::string& data_directory) {
  return data_directory + "/gpus";
}
inline constexpr const char* kRelayAddress = "169.254.170.2";

struct LocalSettings {
  std::string data_directory;  // absolute
  std::string agent_program;   // path of trainyard-agent
  // The configured machines, read at each look; nothing, or none: this machine, all of it.
  std::function<std::vector<Machine>()> machines;
  std::string network_pool = "10.201.0.0/16";
  // The egress of jobs; the machine's own networks are added to it.
  networks::Egress egress;
  // jobs use this machine's own name servers, as they are when a gang starts
  bool names_by_machine = true;
  // For jobs of a role, by its name or ARN: these rules are read before the others.
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;
  std::map<std::string, std::string> agent_environment;
  // GPU memory is cleared between jobs; a GPU that cannot be cleared is not offered.
  bool clear_gpus = true;
  std::string run_directory =
      containers::run_directory();  // gone after a reboot, as everything that it refers to
};

// Errors: invalid (settings), and those of files. Loads what an earlier server left.
Result<std::unique_ptr<Launcher>> make_local(const LocalSettings& settings, Clock& clock);
// The largest gang in this network pool. Errors: invalid, when it is not a network.
Result<int64_t> gang_hosts_max(const std::string& network_pool, bool encrypted);

// Removes orphans that crashes left on this machine: containers whose agent is gone; bridges,
// namespaces and firewall tables of attempts without a living agent; everything of servers whose
// data directory is gone. Attempts' directories stay, for the server to read and remove. Returns
// one line for each removed thing.
//
// Requires: no server runs on data_directory (the caller holds its lock). "" sweeps only what
// belongs to no server.
Result<std::vector<std::string>> sweep(
    const std::string& data_directory,
    const std::string& run_directory = LocalSettings().run_directory);

}  // namespace trainyard::launch

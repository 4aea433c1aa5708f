// Makes the launcher of this machine, which runs gangs in network namespaces behind a bridge, with
// one detached agent for each host.
//
// Its records are in DATA/attempts/ATTEMPT, and it finds everything on the machine by name, so that
// a server continues after a kill at any instant:
//
//   launch.json    the names and addresses of everything that will be made; written first
//   0/ 1/ ..       one directory for each host's agent, in which the launcher writes
//     order.json   the agent's order (0600)
//     hosts        the start of its /etc/hosts
//     agent.json   the identity of the agent's process; written once it is started
//     agent.log    its standard streams
//     left         written by the agent last, once it has cleaned up
//
// An agent is started as
//   trainyard-agent --order FILE --directory DIR --network-namespace FILE --address ADDRESS
//       --host-table FILE [--devices FILE,..]
// with its attempt's directory in kAttemptVariable and its own in kHostVariable. Its children
// inherit these variables (the mark), so that remaining processes are found. The relay of the agent
// can listen on the address 169.254.170.2 of its host's lo.
//
// GPUs are assigned whole, by device file; the record has them. When a gang ends, everything is
// removed at once, except for its network (reaper.hpp removes it); record and addresses stay until
// the network is removed.
//
// If a record cannot be read when the server starts (on a failing disk), it is read again at each
// list(). Until then its agents continue; list() shows them under the attempt of their directory
// without a token. ensure() and remove() of that attempt fail with `unavailable`, and no GPUs are
// assigned, since their owners are unknown.
//
// If the server was killed while it started a gang, ensure() completes the gang: it starts all
// agents again if none was started, else the missing ones. Until then list() shows the started
// agents.
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
// The directory in which all agents of a server keep unpacked images: DATA/images.
inline constexpr const char* kImagesVariable = "TRAINYARD_IMAGES_DIRECTORY";
// The logins of registries and the directories of OCI layouts (domain/image_sources.hpp), which the
// server writes.
inline constexpr const char* kImageSourcesVariable = "TRAINYARD_IMAGE_SOURCES";
inline std::string image_sources_file(const std::string& data_directory) {
  return data_directory + "/image-sources.json";
}
// The directory in which agents keep the state of GPUs between jobs
// (containers/gpu/gpu_memory.hpp): DATA/gpus. Unset: nothing is cleared.
inline constexpr const char* kGpusVariable = "TRAINYARD_GPUS_DIRECTORY";
inline std::string gpus_directory(const std::string& data_directory) {
  return data_directory + "/gpus";
}
inline constexpr const char* kRelayAddress = "169.254.170.2";

struct LocalSettings {
  std::string data_directory;  // absolute
  std::string agent_program;   // path of trainyard-agent
  // Returns the configured machines; called at each use. Unset or empty: all of this machine.
  std::function<std::vector<Machine>()> machines;
  std::string network_pool = "10.201.0.0/16";
  // The egress of jobs. The machine's own networks are added to it.
  networks::Egress egress;
  // True: jobs use the name servers that this machine has when a gang starts.
  bool names_by_machine = true;
  // By name or ARN of a role: rules that precede the others for its jobs.
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;
  std::map<std::string, std::string> agent_environment;
  // GPU memory is cleared between jobs; a GPU that cannot be cleared is not offered.
  bool clear_gpus = true;
  // Cleared by a reboot, like everything that it refers to.
  std::string run_directory = containers::run_directory();
};

// Loads the attempts of an earlier server. Errors: invalid (settings), and those of files.
Result<std::unique_ptr<Launcher>> make_local(const LocalSettings& settings, Clock& clock);
// Returns the size of the largest gang in this network pool. Errors: invalid, if it is not a
// network.
Result<int64_t> gang_hosts_max(const std::string& network_pool, bool encrypted);

// Removes orphans that crashes left on this machine: containers without an agent; bridges,
// namespaces and firewall tables of attempts without a running agent; everything of servers whose
// data directory no longer exists. Attempts' directories stay, since the server reads and removes
// them. Returns one line for each removed object.
//
// Requires: no server runs on data_directory (the caller has its lock). "": removes only objects
// that belong to no server.
Result<std::vector<std::string>> sweep(
    const std::string& data_directory,
    const std::string& run_directory = LocalSettings().run_directory);

}  // namespace trainyard::launch

// Holds what the steps of one host's run share: the order, the paths of its files, the
// dependencies, and the results of earlier steps.
//
// Threads: steps run one after another on the agent's worker; members for other threads say so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/endpoints.hpp"
#include "agent/files/channel_mounts.hpp"
#include "agent/files/channel_pipe.hpp"
#include "agent/files/checkpoint_sync.hpp"
#include "agent/files/tree.hpp"
#include "agent/interruption.hpp"
#include "agent/keys.hpp"
#include "agent/lifecycle.hpp"
#include "agent/output/log_pump.hpp"
#include "agent/output/metric_matcher.hpp"
#include "agent/report/facts.hpp"
#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "containers/container.hpp"
#include "containers/exec.hpp"
#include "containers/gpu_memory.hpp"
#include "containers/gpu_usage.hpp"
#include "networks/tunnel.hpp"
#include "objects/objects.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// The host layout: where an agent works; from its command line.
struct HostLayout {
  std::string directory;          // everything that it makes is below
  std::string network_namespace;  // path
  std::string address;            // of the host in its gang's network
  std::string host_table;         // file: the names of all hosts, in the form of /etc/hosts
  std::vector<std::string> devices =
      {};  // device files of this machine that are this host's alone, or shared by all
  // The network under an encrypted one: "GATEWAY/PREFIX" (launch/local/plan.hpp: underlay_text);
  // "" = none.
  std::string underlay = {};
  // The endpoints of all hosts on their nodes, where no network joins these: "ADDRESS:PORT,..";
  // "" = the network under the encrypted one joins them.
  std::string endpoints = {};
};

inline constexpr const char* kVolumeFile = "volume";
// Its mount point: its "ml" is the workspace's "ml" as well, its "layer" the writable layer over an
// image.
inline constexpr const char* kDisk = "disk";
inline constexpr const char* kLayer = "disk/layer";
// Empty directories that the job requested: on that disk, if there is one, else next to it.
inline constexpr const char* kVolumes = "disk/volumes";
inline constexpr const char* kUnlimitedVolumes = "volumes";
// Likewise: what the job writes to mounted channels, and the blocks of those that the machine's
// cache cannot keep.
inline constexpr const char* kChannelLayers = "disk/channels";
inline constexpr const char* kUnlimitedChannelLayers = "channels";
inline constexpr const char* kChannelBlocks = "disk/blocks";
inline constexpr const char* kUnlimitedChannelBlocks = "blocks";
// Where the objects of channels in File mode are mounted, below their writable layers.
inline constexpr const char* kMountedObjects = "objects";

// The endpoints.json of the job's AWS clients.
inline constexpr const char* kEndpointsFile = "etc/endpoints.json";
// The directory of the activity table.
inline constexpr const char* kActivity = "activity";
inline constexpr const char* kPrograms = "programs";  // of a runtime

// An image made ready to run.
struct ReadyImage {
  std::string root;  // "" = this machine's own system
  std::vector<std::string> entrypoint;
  std::vector<std::string> command = {};  // for jobs without one
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  uint32_t user_id = 0, group_id = 0;
  std::vector<containers::Mount> mounts;
};

// The machine's egress for jobs, if it is restricted.
struct EgressState {
  std::string missing = {};      // the reason why there is none; "" when there is one
  std::string name_server = {};  // that forwards to this machine's own; "" = those are reachable
};

// The agent's dependencies on the outside. Tests provide their own.
struct Dependencies {
  objects::Objects& objects;  // uses keys of JobKeys
  std::function<Result<std::unique_ptr<containers::Container>>(const containers::ContainerSpec&,
                                                               int output)>
      start_container;
  std::function<Result<void>(const std::string& id, const std::string& directory)> remove_container;
  // `progress` receives descriptions several times a second; false from it ends the work.
  std::function<Result<ReadyImage>(const domain::Image&, const std::string& directory,
                                   const std::function<bool(const std::string& message)>& progress)>
      unpack_image;
  std::function<Result<std::unique_ptr<Endpoints>>()> open_endpoints;
  Facts& facts;
  Clock& clock;
  Random& random;
  // Sends at once, neither numbered nor spooled; dropped when there is no link.
  std::function<void(const wire::Message&)> say_now = nullptr;
  std::function<Result<std::unique_ptr<containers::ExecProcess>>(const containers::ExecSpec&)>
      start_exec = nullptr;
  // Returns the usage of this host's GPUs; empty when it is not known. Does not wait.
  std::function<std::vector<containers::GpuUsage>()> gpu_usage = nullptr;
  // path of trainyard-entry; "" = there is none, and no script mode
  std::string entry_program = {};
  // Waits for the job's volume, which is being made since the start of the agent, at the
  // workspace's kDisk and "ml", in its file kVolumeFile; none: writes have no limit.
  std::function<Result<void>()> await_volume = {};
  EgressState egress = {};
  std::function<Result<std::unique_ptr<networks::Tunnel>>(const networks::TunnelSpec&)>
      open_tunnel = nullptr;
  // it belongs to a reused container as well, and is removed with that one
  bool keeps_volume = false;
  const containers::GpuMarks* gpu_marks = nullptr;  // nullptr: GPU memory is not cleared
  cache::BlockCache* cache = nullptr;               // the machine's; nullptr: none
};

// Lets steps wait for the server's Welcome.
class Greeting {
 public:
  void hear();
  Result<void> wait(const Interruption& interruption) const;  // Errors: cancelled
 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  bool heard_ GUARDED_BY(mutex_) = false;
};

// Below a host's directory: where channels' shared file systems are mounted.
inline constexpr const char* kFileSystems = "file_systems";

struct StepContext {
  const wire::Order& order;
  const HostLayout& place;
  Dependencies& world;
  JobKeys& keys;
  Interruption& interruption;
  Greeting& greeting;
  bool died_before = false;  // the spool held facts: an agent ran here and died

  // Set by steps, in the order of the list.
  ReadyImage image;
  bool runs_script = false;  // entry is the container's program
  std::unique_ptr<networks::Tunnel> tunnel = nullptr;
  std::unique_ptr<Endpoints> endpoints;
  std::unique_ptr<MetricMatcher> metrics;
  std::unique_ptr<LogPump> pump;
  std::unique_ptr<containers::Container> container;

  // For the current stage's work.
  HostRun run;     // as it was when the work was ordered
  StepsDone done;  // what it answers

  // Set by steps.
  FirstFailure input_failure = {};                       // of a streamed channel: from any thread
  std::vector<std::unique_ptr<ChannelPipe>> pipes = {};  // of channels in Pipe mode
  std::unique_ptr<ListingMarks> listing_marks = nullptr;
  std::unique_ptr<ChannelMounts> channel_mounts = nullptr;
  uint64_t copied_input_bytes = 0;                    // bytes of all copied channels
  std::vector<std::string> claimed_gpus = {};         // that hold memory of this job
  std::vector<containers::Mount> mounts = {};         // added by the steps to the container's
  std::map<std::string, std::string> variables = {};  // likewise
  // The job's /opt/ml, held since before the job ran: all files below it are opened through it.
  std::optional<Tree> ml_tree = std::nullopt;
  // In which the job's ranks count what they do; the job can write to it.
  os::File activity_table = {};
  std::vector<std::unique_ptr<CheckpointSync>> syncs = {};  // of directories that the job writes to
  bool volume_limited = false;                              // writes beyond its size fail
  // reported after the upload of artifacts
  std::optional<Failure> sync_failure = std::nullopt;

  std::string path(const std::string& name) const { return place.directory + "/" + name; }
  // Returns the path of a file or directory that the job may write: on its volume, if that is
  // limited, so that nothing of the machine's own disk is in its reach.
  std::string writable_path(const std::string& name) const {
    return path(volume_limited ? std::string(kDisk) + "/" + name : name);
  }
  // True for a job that has no volume because it writes to memory only. What it is given of the
  // machine's disk is read-only.
  bool writes_to_memory_only() const {
    return !world.await_volume && order.spec.contract == domain::Contract::plain;
  }
  std::string ml(const std::string& name = "") const {
    return path("ml") + (name.empty() ? "" : "/" + name);
  }
  std::string host_name() const { return domain::host_name(order.host); }
  const domain::ContainerOptions& container_options() const {
    return order.spec.group(order.host).container_options;
  }
  std::string container_id() const {
    return order.attempt.text() + "-" + std::to_string(order.host);
  }
};

// Returns the member of the request that limits the host's writes.
inline const char* size_member(const StepContext& context) {
  return context.order.spec.contract == domain::Contract::plain ? "ephemeralStorage"
                                                                : "VolumeSizeInGB";
}

// Returns the identity with which the job reads and writes shared files.
inline containers::PosixIdentity shared_identity(const StepContext& context) {
  return {context.order.shared_user_id, context.order.shared_group_id};
}

}  // namespace trainyard::agent

// StepContext is the state that the steps of one host's run share: the order, the paths of the
// host's files, the dependencies, and the results of earlier steps.
//
// Threads: steps run one after another on the agent's worker. Members that other threads use say
// so.
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
#include "containers/gpu/gpu_memory.hpp"
#include "containers/gpu/gpu_usage.hpp"
#include "networks/tunnel.hpp"
#include "objects/objects.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// The directories, addresses and devices of an agent's host, from its command line.
struct HostLayout {
  std::string directory;          // the parent of all files that the agent makes
  std::string network_namespace;  // path
  std::string address;            // of the host in its gang's network
  std::string host_table;         // file: the names of all hosts, in the form of /etc/hosts
  // Device files of this machine: those assigned to this host, and those that all hosts share.
  std::vector<std::string> devices = {};
  // The network that carries an encrypted one: "GATEWAY/PREFIX" (launch/local/plan.hpp:
  // underlay_text); "" = none.
  std::string underlay = {};
  // "ADDRESS:PORT,..": the endpoints of all hosts on their nodes, if no network connects the nodes;
  // "" = the underlay connects them.
  std::string endpoints = {};
};

inline constexpr const char* kVolumeFile = "volume";
// The mount point of the volume. Its "ml" is also mounted as the workspace's "ml"; its "layer" is
// the writable layer over an image.
inline constexpr const char* kDisk = "disk";
inline constexpr const char* kLayer = "disk/layer";
// Empty directories that the job requested: on the volume, if there is one, else next to it.
inline constexpr const char* kVolumes = "disk/volumes";
inline constexpr const char* kUnlimitedVolumes = "volumes";
// Likewise: the files that the job writes to mounted channels, and the blocks of channels that the
// machine's cache cannot keep.
inline constexpr const char* kChannelLayers = "disk/channels";
inline constexpr const char* kUnlimitedChannelLayers = "channels";
inline constexpr const char* kChannelBlocks = "disk/blocks";
inline constexpr const char* kUnlimitedChannelBlocks = "blocks";
// The directory below which the objects of channels in File mode are mounted, under their writable
// layers.
inline constexpr const char* kMountedObjects = "objects";

// The endpoints.json of the job's AWS clients.
inline constexpr const char* kEndpointsFile = "etc/endpoints.json";
// The directory of the activity table.
inline constexpr const char* kActivity = "activity";
inline constexpr const char* kPrograms = "programs";  // of a runtime

// An image that is ready to run.
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
  std::string missing = {};  // the reason why there is no egress; "" = there is egress
  // A name server that forwards to the machine's own; "" = the machine's own are reachable.
  std::string name_server = {};
};

// The agent's dependencies on the outside. Tests provide their own.
struct Dependencies {
  objects::Objects& objects;  // uses the keys of JobKeys
  std::function<Result<std::unique_ptr<containers::Container>>(const containers::ContainerSpec&,
                                                               int output)>
      start_container;
  std::function<Result<void>(const std::string& id, const std::string& directory)> remove_container;
  // `progress` receives a description several times a second; it returns false to end the work.
  std::function<Result<ReadyImage>(const domain::Image&, const std::string& directory,
                                   const std::function<bool(const std::string& message)>& progress)>
      unpack_image;
  std::function<Result<std::unique_ptr<Endpoints>>()> open_endpoints;
  Facts& facts;
  Clock& clock;
  Random& random;
  // Sends the message at once, neither numbered nor spooled; drops it when there is no link.
  std::function<void(const wire::Message&)> send_now = nullptr;
  std::function<Result<std::unique_ptr<containers::ExecProcess>>(const containers::ExecSpec&)>
      start_exec = nullptr;
  // Returns the usage of this host's GPUs; empty when it is not known. Does not wait.
  std::function<std::vector<containers::GpuUsage>()> gpu_usage = nullptr;
  // The path of trainyard-entry; "" = missing, and there is no script mode.
  std::string entry_program = {};
  // Waits until the job's volume is mounted at the workspace's kDisk and "ml". Its file is
  // kVolumeFile; the agent begins to make it at its start. Empty: writes have no limit.
  std::function<Result<void>()> await_volume = {};
  EgressState egress = {};
  std::function<Result<std::unique_ptr<networks::Tunnel>>(const networks::TunnelSpec&)>
      open_tunnel = nullptr;
  // True: the volume belongs to a reused container, and is removed with it.
  bool keeps_volume = false;
  const containers::GpuMarks* gpu_marks = nullptr;  // nullptr: GPU memory is not cleared
  cache::BlockCache* cache = nullptr;               // the machine's cache; nullptr: none
};

// Blocks steps until the server's Welcome has arrived.
class WelcomeLatch {
 public:
  void set_received();
  Result<void> wait(const Interruption& interruption) const;  // Errors: cancelled
 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  bool received_ GUARDED_BY(mutex_) = false;
};

// The directory, below the host's, in which the shared file systems of channels are mounted.
inline constexpr const char* kFileSystems = "file_systems";

struct StepContext {
  const wire::Order& order;
  const HostLayout& place;
  Dependencies& world;
  JobKeys& keys;
  Interruption& interruption;
  WelcomeLatch& welcome;
  bool died_before = false;  // the spool contained facts: an agent ran here before and was killed

  // Set by steps, in the order of the list.
  ReadyImage image;
  bool runs_script = false;  // entry is the container's program
  std::unique_ptr<networks::Tunnel> tunnel = nullptr;
  std::unique_ptr<Endpoints> endpoints;
  std::unique_ptr<MetricMatcher> metrics;
  std::unique_ptr<LogPump> pump;
  std::unique_ptr<containers::Container> container;

  // For the work of the current stage.
  HostRun run;     // the state when the work was ordered
  StepsDone done;  // the event that the work posts at its end

  // Set by steps.
  FirstFailure input_failure = {};                       // of streamed channels; any thread
  std::vector<std::unique_ptr<ChannelPipe>> pipes = {};  // of channels in Pipe mode
  std::unique_ptr<ListingMarks> listing_marks = nullptr;
  std::unique_ptr<ChannelMounts> channel_mounts = nullptr;
  uint64_t copied_input_bytes = 0;                    // bytes of all copied channels
  std::vector<std::string> claimed_gpus = {};         // GPUs that may contain data of this job
  std::vector<containers::Mount> mounts = {};         // added to the container's
  std::map<std::string, std::string> variables = {};  // likewise
  // The job's /opt/ml, held since before the job ran: all files below it are opened through it.
  std::optional<Tree> ml_tree = std::nullopt;
  // The table in which the job's ranks count their operations; the job can write to it.
  os::File activity_table = {};
  std::vector<std::unique_ptr<CheckpointSync>> syncs = {};  // of directories that the job writes to
  bool volume_limited = false;                              // writes beyond its size fail
  // The failure of the last sync, reported after the upload of artifacts.
  std::optional<Failure> sync_failure = std::nullopt;

  std::string path(const std::string& name) const { return place.directory + "/" + name; }
  // Returns the path of a file or directory that the job may write. If the volume is limited, it is
  // on the volume, so that the job cannot write to the machine's own disk.
  std::string writable_path(const std::string& name) const {
    return path(volume_limited ? std::string(kDisk) + "/" + name : name);
  }
  // True for a job without a volume that writes to memory only. All files on the machine's disk are
  // read-only for it.
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

// A StepContext holds what the steps of one host's run share: the order, the paths of its files, the dependencies, and the
// results of earlier steps.
//
// Threads: steps run one after another on the agent's worker; what other threads touch says so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "agent/channel_pipe.hpp"
#include "agent/endpoints.hpp"
#include "agent/facts.hpp"
#include "agent/interruption.hpp"
#include "agent/keys.hpp"
#include "agent/lifecycle.hpp"
#include "agent/log_pump.hpp"
#include "agent/metric_matcher.hpp"
#include "agent/mirror.hpp"
#include "agent/tree.hpp"
#include "base/random.hpp"
#include "containers/container.hpp"
#include "containers/exec.hpp"
#include "containers/gpu_memory.hpp"
#include "containers/gpu_usage.hpp"
#include "networks/tunnel.hpp"
#include "objects/objects.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// Where an agent works; from its command line.
struct Place {
  std::string directory;          // all that it makes lies below
  std::string network_namespace;  // path
  std::string address;            // of the host in its gang's network
  std::string host_table;         // file: the names of all hosts, in the form of /etc/hosts
  std::vector<std::string> devices =
      {};  // device files of this machine that are this host's alone, or shared by all
  // What an encrypted network lies on: "GATEWAY/PREFIX" (launch/local/plan.hpp: underlay_words); "" = there is none.
  std::string underlay = {};
};

inline constexpr const char* kVolumeFile = "volume";
// Where it is mounted: its "ml" is the workspace's "ml" as well, its "layer" what is written over an image.
inline constexpr const char* kDisk = "disk";
inline constexpr const char* kLayer = "disk/layer";
// Empty directories that the job asked for: on that disk, where there is one, else beside it.
inline constexpr const char* kVolumes = "disk/volumes";
inline constexpr const char* kVolumesBeside = "volumes";

// An image made ready to run.
struct ReadyImage {
  std::string root;  // "" = this machine's own system
  std::vector<std::string> entrypoint;
  std::vector<std::string> command = {};  // of jobs that name none
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  uint32_t user_id = 0, group_id = 0;
  std::vector<containers::Mount> mounts;
};

// How this machine lets jobs reach the outside, where it is not as usual.
struct WayOut {
  std::string missing = {};      // why there is none, in words; "" when there is one
  std::string name_server = {};  // that asks this machine's own; "" = those of this machine are reached
};

// The outside, as the agent meets it. Tests give their own.
struct World {
  objects::Objects& objects;  // asks for keys through JobKeys
  std::function<Result<std::unique_ptr<containers::Container>>(const containers::ContainerSpec&, int output)>
      start_container;
  std::function<Result<void>(const std::string& id, const std::string& directory)> remove_container;
  // `progress` is told how far it is, in words, several times a second; false from it ends the work.
  std::function<Result<ReadyImage>(const domain::Image&, const std::string& directory,
                                   const std::function<bool(const std::string& words)>& progress)>
      unpack_image;
  std::function<Result<std::unique_ptr<Endpoints>>()> open_endpoints;
  Facts& facts;
  Clock& clock;
  Random& random;
  // Up at once, neither numbered nor spooled; lost when there is no link.
  std::function<void(const wire::Message&)> say_now = nullptr;
  std::function<Result<std::unique_ptr<containers::ExecProcess>>(const containers::ExecSpec&)> start_exec =
      nullptr;
  std::function<Result<std::vector<containers::GpuUsage>>()> gpu_usage = nullptr;  // of this host's GPUs
  std::string entry_program = {};  // path of trainyard-entry; "" = there is none, and no script mode
  // Waits for the job's volume, which is being made at the workspace's kDisk and "ml", in its file kVolumeFile, since
  // the agent began; none: what is written has no limit.
  std::function<Result<void>()> await_volume = {};
  WayOut way_out = {};
  std::function<Result<std::unique_ptr<networks::Tunnel>>(const networks::TunnelSpec&)> open_tunnel = nullptr;
  bool keeps_volume = false;  // it is a kept container's as well, and goes with that one
  const containers::GpuMarks* gpu_marks = nullptr;  // nullptr: what jobs leave on GPUs stays there
};

// Lets steps wait for the server's first word.
class Greeting {
 public:
  void hear();
  Result<void> wait(const Interruption& interruption) const;  // Errors: cancelled
 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool heard_ = false;  // guarded by mutex_
};

// Below a host's directory: where channels' shared file systems are mounted.
inline constexpr const char* kFileSystems = "file_systems";

struct StepContext {
  const wire::Order& order;
  const Place& place;
  World& world;
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

  // Of the present stage's work.
  HostRun run;     // as it was when the work was ordered
  StepsDone done;  // what it answers

  // Set by steps.
  FirstFailure input_failure = {};                       // of a channel that is streamed: from any thread
  std::vector<std::unique_ptr<ChannelPipe>> pipes = {};  // of channels in Pipe mode
  std::vector<std::string> claimed_gpus = {};            // that hold memory of this job
  std::vector<containers::Mount> mounts = {};            // what the steps add to the container's
  std::map<std::string, std::string> variables = {};     // likewise
  // What the job sees as /opt/ml, held since before it ran: the way to everything below it.
  std::optional<Tree> ml_tree = std::nullopt;
  std::vector<std::unique_ptr<Mirror>> mirrors = {};     // of directories that the job writes to
  bool volume_limited = false;                           // writing beyond its size is refused
  std::optional<Failure> mirror_failure = std::nullopt;  // told after the artifacts went up

  std::string path(const std::string& name) const { return place.directory + "/" + name; }
  std::string ml(const std::string& name = "") const { return path("ml") + (name.empty() ? "" : "/" + name); }
  std::string host_name() const { return domain::host_name(order.host); }
  const domain::ContainerOptions& container_options() const {
    return order.spec.group(order.host).container_options;
  }
  std::string container_id() const { return order.attempt.text() + "-" + std::to_string(order.host); }
};

// The member of the request that says how much the host may write.
inline const char* size_member(const StepContext& context) {
  return context.order.spec.plain() ? "ephemeralStorage" : "VolumeSizeInGB";
}

// As whom the job reads and writes what it shares with others.
inline containers::PosixIdentity shared_identity(const StepContext& context) {
  return {context.order.shared_user_id, context.order.shared_group_id};
}

}  // namespace trainyard::agent

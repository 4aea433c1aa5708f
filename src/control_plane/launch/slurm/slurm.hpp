// Slurm is the launcher's interface to a Slurm cluster: it lists jobs and nodes, and submits and
// cancels jobs. command_line.hpp and rest.hpp implement it, and memory_slurm.hpp for tests.
//
// A job belongs to the server's own account in Slurm, or to the Unix account of its submitter
// (unix_users.hpp). "" stands for the server's own account.
//
// Threads: confined to one, except for stop(). Errors: unavailable (slurmctld or slurmrestd does
// not answer: try again), denied (wrong or expired token, missing permission), invalid (Slurm
// rejects the request; the message quotes it), exhausted (Slurm rejects it because of the current
// state of nodes: try again).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/slurm/unix_users.hpp"

namespace trainyard::launch {

// More than the largest clusters have.
inline constexpr size_t kSlurmNodesMax = 20'000;
// slurmctld keeps 10,000 by default (MaxJobCount).
inline constexpr size_t kSlurmJobsMax = 200'000;
// slurmctld rejects longer comments.
inline constexpr size_t kSlurmCommentBytesMax = 1024;

struct SlurmJob {
  uint64_t id = 0;             // of a heterogeneous job: of its first component
  std::string state;           // "PENDING", "RUNNING", "NODE_FAIL"
  std::string reason;          // Slurm's reason for the state: "Resources", "None"
  std::string expected_start;  // of a pending job, by the cluster's clock; "" or "N/A": unknown
  std::string nodes;           // a host list: "n[1-2]"; "" before it runs
  std::string name;
  std::string comment;
  std::string user = {};  // the Unix account that owns it in Slurm; "": the server's own
  // Slurm requeued the job after it had started, as after a node's failure; its processes have
  // ended. It does not requeue jobs that slurm_by_programs() submits.
  bool requeued = false;
  // Slurm has begun to end the job in favour of another one: its processes have got SIGTERM, and
  // get SIGKILL at the end of the partition's GraceTime.
  bool preempted = false;
  // The host list of each component of a heterogeneous job. Empty: it has one component.
  std::vector<std::string> component_nodes = {};
};

struct SlurmNode {
  std::string name;
  std::string address;              // to which daemons connect: an address, or a name
  std::vector<std::string> states;  // "IDLE", "DRAIN": upper case, without marks
  bool responds = true;
  std::string reason;  // why it is drained or down, from the administrator or Slurm
  std::vector<std::string> partitions;
  std::vector<std::string> features = {};
  int64_t cpus = 0, cpus_allocated = 0;
  int64_t memory_mib = 0, memory_allocated_mib = 0;
  int64_t gpus = 0, gpus_allocated = 0;
};

// Options of sbatch: partition, account and so on. "": Slurm's default.
struct SlurmPlacement {
  std::string partition = {};
  std::string account = {};
  std::string qos = {};
  std::string constraint = {};
  std::string reservation = {};
  std::string licenses = {};
  std::string gpu_type = {};  // of the GRES: "h100" for gpu:h100:4
  bool exclusive = false;     // whole nodes
  bool operator==(const SlurmPlacement&) const = default;
};

// The resources of a job on one node.
struct NodeAmounts {
  int64_t cpus = 0, memory_mib = 0, gpus = 0;
  void add(const NodeAmounts& other) {
    cpus += other.cpus;
    memory_mib += other.memory_mib;
    gpus += other.gpus;
  }
  bool operator==(const NodeAmounts&) const = default;
};

// Nodes of which a job requests the same.
struct SlurmComponent {
  std::vector<std::string> nodes;
  NodeAmounts per_node = {.cpus = 1};
};

// Slurm starts all components of a job at once. A job with `others` is a heterogeneous job for
// Slurm (components.hpp), which only its backfill scheduler starts.
struct SlurmJobRequest : SlurmComponent {
  std::string name;
  std::string comment;
  std::string script;              // may hold secrets: never an argument of a program
  int64_t time_limit_minutes = 0;  // 0: the partition's default
  SlurmPlacement placement;
  std::vector<uint64_t> after = {};         // it starts when these jobs have ended
  UnixUser user = {};                       // the owner; without a name: the server's own account
  std::vector<SlurmComponent> others = {};  // after the first component
};

// Formats the job's dependencies: "singleton,afterany:7". `singleton` delays a repeated submission
// after a lost answer, which has the same name; the jobs in `after` follow. Pure.
inline std::string dependency_of(const SlurmJobRequest& request) {
  std::string text = "singleton";
  for (const uint64_t job : request.after) text += ",afterany:" + std::to_string(job);
  return text;
}

class Slurm {
 public:
  virtual ~Slurm() = default;
  // Returns the jobs with a comment of Trainyard that slurmctld lists, including those that ended a
  // while ago (MinJobAge), of all users: comments are public, and others may copy them. `user`
  // comes from Slurm, never from the comment.
  virtual Result<std::vector<SlurmJob>> jobs() = 0;
  // Returns the ended jobs among these from Slurm's accounting, even if slurmctld does not list
  // them. `name`, `comment` and `nodes` are empty. Errors also: not_found (Slurm has no accounting
  // storage, or this implementation does not read it).
  virtual Result<std::vector<SlurmJob>> ended(const std::vector<uint64_t>&) {
    return not_found("reading Slurm's accounting: not supported by this connection to Slurm");
  }
  // Checks that jobs can be submitted for another account. Errors: denied, with the missing right.
  virtual Result<void> check_user(const UnixUser&) { return {}; }
  virtual Result<std::vector<SlurmNode>> nodes() = 0;
  // Returns the job's id. A job of the same name starts only after the current one has ended.
  virtual Result<uint64_t> submit(const SlurmJobRequest& request) = 0;
  // Renames the job and cancels it. After an error it may have the new name and still run. No
  // effect on a job that has ended or is unknown.
  virtual Result<void> cancel(uint64_t job, const std::string& name) = 0;
  // Make Slurm's power saving start and stop nodes. After an error, some of the nodes may have got
  // the request. Errors also: invalid (an unknown node).
  virtual Result<void> power_up(const std::vector<std::string>&) { return no_power_saving(); }
  virtual Result<void> power_down(const std::vector<std::string>&) { return no_power_saving(); }
  // Makes a call that is in progress on another thread, and later ones, fail with `unavailable`, if
  // the implementation can.
  virtual void stop() {}

 private:
  static Error no_power_saving() {
    return invalid("powering nodes up and down: not supported by this connection to Slurm");
  }
};

}  // namespace trainyard::launch

// A Job is a gang of hosts, each running one container or process under the job contract, started together or
// not at all, watched, retried by policy, and accounted. The resources of AWS's APIs are views of it (api
// translates).
//
//   job      what a user submits
//   attempt  one try at it: its identity (job, number, token) is never used again
//   host     a member of an attempt's gang: algo-1 .. algo-n
//   machine  capacity that a launcher offers; several hosts may share one
//
// States and their legal moves are in job_state.hpp. JSON forms (to_json/from_json) are what the ledger and
// the wire carry: adding a field is compatible, a missing one takes its default.
//
// Threads: plain values. Units: seconds are of wall time; bytes are bytes; cpus may be fractions.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/container.hpp"
#include "domain/job_options.hpp"
#include "domain/job_state.hpp"

namespace trainyard::domain {

// A job's name is its own within its region.
struct JobKey {
  std::string region;
  std::string name;
  auto operator<=>(const JobKey&) const = default;
};

// Assigned by the ledger, never used again.
using JobNumber = uint64_t;

// An attempt's identity. It names directories, bridges and cgroups: "j17a1".
struct AttemptId {
  JobNumber job = 0;
  uint32_t number = 0;  // 1, 2, .. within the job
  auto operator<=>(const AttemptId&) const = default;
  std::string text() const { return "j" + std::to_string(job) + "a" + std::to_string(number); }
};
// Errors: invalid, when text is not of the form "j17a1".
Result<AttemptId> parse_attempt_id(std::string_view text);

// The index of a host in the gang, from 0. Its name is algo-(index+1).
using HostIndex = uint32_t;
inline std::string host_name(HostIndex index) { return "algo-" + std::to_string(index + 1); }

enum class InputMode { file, pipe, fast_file };
enum class Distribution { fully_replicated, sharded_by_s3_key };

// A directory of a shared file system, as a channel.
struct FileSystemSource {
  std::string id;    // "fs-0123456789abcdef0": a name of the config's file systems
  std::string type;  // "EFS", "FSxLustre"
  std::string path;  // below the file system's root
  bool writable = false;
};

struct Channel {
  std::string name;
  std::string content_type;  // "" when none was given
  InputMode input_mode = InputMode::file;
  std::string compression;     // "None", "Gzip"
  std::string record_wrapper;  // "None", "RecordIO"
  std::string s3_data_type;    // "S3Prefix", "ManifestFile", "AugmentedManifestFile"
  std::string s3_uri;          // s3://bucket/prefix
  Distribution distribution = Distribution::fully_replicated;
  std::vector<std::string> attribute_names;     // of an augmented manifest, in the order of its records
  std::vector<std::string> groups;              // instance groups that get it; empty: all
  std::optional<int64_t> shuffle_seed;          // nothing: in the order of keys
  std::optional<FileSystemSource> file_system;  // instead of s3_uri

  bool is_of(const std::string& group) const;
};

// A directory that is synchronised to S3 while the job runs, and restored when it starts again.
struct Checkpoint {
  std::string uri;   // s3://bucket/prefix, without a slash at its end
  std::string path;  // in the container
};

struct MetricDefinition {
  std::string name;
  std::string regex;  // RE2; the first group is the value
};

// The share of a machine that one host gets.
struct Share {
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

struct InstanceGroup {
  std::string name;  // "homogeneousCluster" when the request named no groups
  std::string instance_type;
  uint32_t count = 1;
  std::optional<Share> share = {};          // what each host requests; nothing: all of its type
  std::optional<Program> program = {};      // what its hosts run; nothing: the program of the spec
  ContainerOptions container_options = {};  // in addition to program and share
};

struct Tag {
  std::string key;
  std::string value;
};

// The contract of a job's containers: the training contract (files, variables and exit rules of /opt/ml), or only what the
// job requests.
enum class Contract { training, plain };
inline constexpr std::string_view kTrainingQueues = "service/";  // before the queue's name, in listed_queue()

// What the user requested, independent of the API. `request` is the request itself, kept verbatim: Describe
// echoes it, and the container finds it as trainingjobconfig.json.
struct JobSpec {
  std::string image;
  std::vector<std::string> entrypoint;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> hyperparameters;
  std::vector<Channel> channels;
  std::vector<MetricDefinition> metrics;
  std::vector<InstanceGroup> groups;  // at least one
  int64_t volume_gib = 1;
  std::string principal;  // its creator: a user's or a role's name; "" in records of former versions
  std::string role_arn;
  std::string output_uri;  // s3://bucket/prefix, without a slash at its end
  std::string output_kms_key;
  bool compress_model = true;                  // model.tar.gz, else the files below model/
  int64_t max_runtime_seconds = 86400;         // over all attempts; of jobs of queues: for each attempt
  bool spot = false;                           // may be interrupted, and is then started again
  std::optional<int64_t> max_wait_seconds;     // spot: from creation to the end, waiting included
  std::optional<int64_t> max_pending_seconds;  // from creation to the first start
  uint32_t retries_max = 0;                    // of attempts that failed for a reason of ours
  std::optional<Checkpoint> checkpoint;
  int64_t keep_alive_seconds = 0;  // its hosts stay that long for the next job that matches (warm pool)
  bool network_isolation = false;
  bool encrypt_traffic = false;  // between hosts
  Contract contract = Contract::training;
  std::optional<QueueOptions> queue;  // nothing: a job without a queue
  // The following are set for jobs in queues.
  std::string display_name;  // as its user calls it; many jobs may have it. The job's key has its id
  std::string definition;    // the definition that it was created from: ARN, with revision
  RetryOptions retry;
  std::vector<std::string> depends_on;        // ids of jobs that must succeed first
  std::vector<std::string> depends_on_alike;  // ids of arrays: a child depends on their child of its index
  ArrayOptions array;
  // Of a multi-node parallel job: its main host. The others start when it runs and end when it ends.
  std::optional<uint32_t> main_node;
  Json request;

  // The queue under which the ledger lists it: training jobs apart. No queue's name has a slash; "" for jobs without one.
  std::string listed_queue() const;
  uint32_t hosts() const;  // over all groups
  const InstanceGroup& group(HostIndex host) const;
  const std::string& instance_type(HostIndex host) const { return group(host).instance_type; }
  // The main host of a multi-node parallel job.
  std::optional<HostIndex> main_host() const;
  // True if the end of this host determines the end of the job: every host, or the main host only.
  bool decides(HostIndex host) const;
};

// A host as control knows it.
struct Host {
  HostState state = HostState::placed;
  std::string machine;  // where it was placed
  Share share;
  uint64_t facts_applied = 0;           // the number of the last fact: later ones are new, others are repeats
  std::optional<int> exit_code;         // of the user's process; 128+n for signal n
  std::string failure;                  // its failure as it reported it, for FailureReason
  std::optional<Fault> fault;           // who caused it
  StopCause stopped = StopCause::none;  // the order that ended its run early; none: it ended by itself
  std::string staged_model;  // uploading, hosts after the first: key of its model tar; "" = had no files
  Instant state_since;
};

// Former attempts keep everything but their hosts.
struct Attempt {
  uint32_t number = 1;
  std::string token;  // fencing: an agent with another token is old and must leave
  AttemptState state = AttemptState::starting;
  std::vector<Host> hosts;
  std::optional<HostIndex> first_failed;  // the host whose failure ended the gang; its reason is the job's
  std::string interruption;               // why it was interrupted and another one follows; "" if it was not
  std::optional<Instant> interrupted;     // when an interruption was requested; unset: a host was lost
  bool preempted = false;                 // then by the scheduler, for a job with precedence
  Duration notice{};                      // between SIGTERM and SIGKILL of the user's processes
  JobNumber warm_pool = 0;                // the job whose hosts it reuses; 0: none
  std::string environment;       // the compute environment that it was placed in; "" for jobs of no queue
  bool spot = false;             // that environment's machines may be reclaimed, which counts as a failure
  std::optional<int> exit_code;  // once it ended: of the host that failed first, else of the first host
  std::string failure;           // then: the failure that this host reported; "" if none
  std::optional<Fault> fault;    // then: who caused it
  std::string machine;           // then: where that host was
  Instant started;
  std::optional<Instant> training_started;  // its first host began to run
  std::optional<Instant> ended;

  // The training time, which is billed.
  Duration ran(Instant now) const;
};

// The hosts of the last attempt, kept for the next job that requests the same.
struct WarmPool {
  WarmPoolState state = WarmPoolState::in_use;
  int64_t keep_alive_seconds = 0;    // as it was updated last
  std::optional<Instant> available;  // since when; unset until then
  std::optional<Instant> ended;      // reused or terminated
  std::string reused_by;             // the job's name
  // Requires: it is available.
  Instant until() const { return *available + std::chrono::seconds(keep_alive_seconds); }
};

// One line of SecondaryStatusTransitions.
struct Transition {
  Phase phase = Phase::starting;
  std::string message;
  Instant start;
  std::optional<Instant> end;
};

struct Job {
  JobNumber number = 0;
  JobKey key;
  std::string account;
  JobSpec spec;
  JobState state = JobState::waiting;
  Instant created;
  Instant modified;
  // All instants of a job are in its own time, which no jump of the wall clock moves (docs/decisions/32): control's time plus
  // this offset. Its creation is the wall clock's time.
  Duration clock_offset{};
  std::vector<Transition> transitions;  // the last one is the present phase
  std::string wait_reason;              // "" unless waiting: the reason, the missing amount and its holder
  std::string note;                     // for the user: "each host was scaled to 1/2 of ml.m5.4xlarge .."
  std::optional<Instant> stop_requested;
  StopCause stop_cause = StopCause::none;
  Withdrawn withdrawn = Withdrawn::no;  // jobs of queues: stopped before their end
  std::string withdrawn_reason;         // as the request gave it
  std::vector<JobNumber> awaits;        // jobs that must succeed before it may be placed
  JobNumber parent = 0;                 // a child of an array: that array; 0: of none
  uint32_t children_made = 0;           // an array: the first ones, which are jobs of their own (array.hpp)
  // Of an array: others of its size; its children depend on theirs one by one.
  std::vector<JobNumber> awaits_alike;
  std::optional<int64_t> new_priority;  // replaces QueueOptions::priority after a change
  std::vector<Attempt> attempts;        // the last one is the present one
  std::string failure_reason;           // as the APIs show it
  std::string model_uri;                // set when it was uploaded
  std::string output_uri;
  std::optional<Instant> training_start;  // first host began to run; TrainingStartTime
  std::optional<Instant> training_end;
  std::optional<WarmPool> warm_pool;  // nothing: none was requested

  Phase phase() const { return transitions.empty() ? Phase::starting : transitions.back().phase; }
  bool finished() const { return is_final(state); }
  // It is never placed: its children are.
  bool is_array() const { return spec.array.size > 0 && parent == 0; }
  // Among the jobs of its share; 0 for jobs of no queue.
  int64_t priority() const { return new_priority.value_or(spec.queue ? spec.queue->priority : 0); }
  // Its machines may be reclaimed.
  bool on_spot(const Attempt& of_it) const { return spec.spot || of_it.spot; }
  const Attempt* attempt() const { return attempts.empty() ? nullptr : &attempts.back(); }
  bool keeps_hosts() const { return warm_pool && warm_pool->state == WarmPoolState::available; }
  // It may still change.
  bool live() const { return !finished() || keeps_hosts(); }
  // Control's time in the job's, and the reverse.
  Instant own_time(Instant of_control) const { return of_control + clock_offset; }
  Instant control_time(Instant own) const { return own - clock_offset; }
  // Over all attempts: what MaxRuntime limits and what is billed, without waiting.
  Duration ran(Instant now) const;
  // What of that counts against max_runtime_seconds.
  Duration ran_of_max(Instant now) const;
};

// True if a job of spec `next` may reuse the hosts that one of `kept` left.
bool same_hosts(const JobSpec& kept, const JobSpec& next);

Json to_json(const Share&);
Json to_json(const Tag&);
Json to_json(const JobKey&);
Json to_json(const JobSpec&);
Json to_json(const Job&);
// All of a job but its spec, which never changes after its creation.
Json progress_json(const Job&);
Result<Share> share_from_json(const Json&);
Result<Tag> tag_from_json(const Json&);
Result<JobNumber> job_number_from_json(const Json&);
Result<JobKey> job_key_from_json(const Json&);
Result<JobSpec> job_spec_from_json(const Json&);
Result<Job> job_from_json(const Json&);

}  // namespace trainyard::domain

// A Job is a gang of hosts, each running one container or process under the job contract. The hosts
// start together or not at all. Attempts are retried by policy, and usage is accounted. The
// resources of AWS's APIs are views of jobs; api translates them.
//
//   job      the unit that a user submits
//   attempt  one try at it: its identity (job, number, token) is never used again
//   host     a member of an attempt's gang: algo-1 .. algo-n
//   machine  capacity that a launcher offers; several hosts may share one
//
// States and their transitions are in job_state.hpp. The ledger and the wire use the JSON forms
// (to_json/from_json): adding a field is compatible, and a missing one takes its default.
//
// Threads: plain values. Units: seconds of wall time; bytes; cpus may be fractions.
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

// A job's name is unique within its region.
struct JobKey {
  std::string region;
  std::string name;
  auto operator<=>(const JobKey&) const = default;
};

// Assigned by the ledger, never reused.
using JobNumber = uint64_t;

// An attempt's identity. It names directories, bridges and cgroups: "j17a1".
struct AttemptId {
  JobNumber job = 0;
  uint32_t number = 0;  // 1, 2, .. within the job
  auto operator<=>(const AttemptId&) const = default;
  std::string text() const { return "j" + std::to_string(job) + "a" + std::to_string(number); }
};
// Errors: invalid, if text does not have the form "j17a1".
Result<AttemptId> parse_attempt_id(std::string_view text);

// The index of a host in the gang, from 0. Its name is algo-(index+1).
using HostIndex = uint32_t;
inline std::string host_name(HostIndex index) { return "algo-" + std::to_string(index + 1); }

enum class InputMode { file, pipe, fast_file };
enum class Distribution { fully_replicated, sharded_by_s3_key };

// A directory of a shared file system, as a channel.
struct FileSystemSource {
  std::string id;    // "fs-0123456789abcdef0": of a file system in the config
  std::string type;  // "EFS", "FSxLustre"
  std::string path;  // below the file system's root
  bool writable = false;
};

struct Channel {
  std::string name;
  std::string content_type;  // "": none was given
  InputMode input_mode = InputMode::file;
  std::string compression;     // "None", "Gzip"
  std::string record_wrapper;  // "None", "RecordIO"
  std::string s3_data_type;    // "S3Prefix", "ManifestFile", "AugmentedManifestFile"
  std::string s3_uri;          // s3://bucket/prefix
  Distribution distribution = Distribution::fully_replicated;
  // of an augmented manifest, in the order of its records
  std::vector<std::string> attribute_names;
  std::vector<std::string> groups;              // instance groups that receive it; empty: all
  std::optional<int64_t> shuffle_seed;          // unset: in the order of keys
  std::optional<FileSystemSource> file_system;  // instead of s3_uri

  bool is_of(const std::string& group) const;
};

// A directory that is synchronised to S3 while the job runs.
struct SyncedDirectory {
  std::string uri;   // s3://bucket/prefix, without a slash at its end
  std::string path;  // in the container
};

// Returns the directory of S3 in which a training job's TensorBoardOutputConfig keeps its files:
// OUTPUT_PATH/JOB/tensorboard-output, where SageMaker's SDKs expect them.
std::string tensorboard_uri(std::string output_path, std::string_view job_name);

struct MetricDefinition {
  std::string name;
  std::string regex;  // RE2; the first group is the value
};

// The share of a machine that one host has.
struct Share {
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

struct InstanceGroup {
  std::string name;  // "homogeneousCluster" if the request has no groups
  std::string instance_type;
  uint32_t count = 1;
  // requested by each host; unset: all of its instance type
  std::optional<Share> share = {};
  std::optional<Program> program = {};      // of its hosts; unset: the program of the spec
  ContainerOptions container_options = {};  // in addition to program and share
};

struct Tag {
  std::string key;
  std::string value;
};

// The contract of a job's containers: the training contract (files, variables and exit rules of
// /opt/ml), or plain containers, as the job requests them.
enum class Contract { training, plain };
// before the queue's name, in listed_queue()
inline constexpr std::string_view kTrainingQueues = "service/";

// The user's request in a form independent of the API. `request` is the original request, kept
// verbatim: Describe returns it, and the container reads it as trainingjobconfig.json.
struct JobSpec {
  std::string image;
  std::vector<std::string> entrypoint;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> hyperparameters;
  std::vector<Channel> channels;
  std::vector<MetricDefinition> metrics;
  std::vector<InstanceGroup> groups;  // at least one
  // Alternatives to the only group, best first: the first with free capacity is selected. Until
  // then `groups` has the first of them. Empty: the request has no alternatives.
  std::vector<InstanceGroup> preferences;
  int64_t volume_gib = 1;
  // its creator: a user's or a role's name; "" in records of earlier versions
  std::string principal;
  std::string role_arn;
  std::string output_uri;  // s3://bucket/prefix, without a slash at its end
  std::string output_kms_key;
  bool compress_model = true;  // to model.tar.gz; else the files are below model/
  // over all attempts; for jobs in queues, of each attempt
  int64_t max_runtime_seconds = 86400;
  bool spot = false;                           // may be interrupted, and is then started again
  std::optional<int64_t> max_wait_seconds;     // spot: from creation to the end, waiting included
  std::optional<int64_t> max_pending_seconds;  // from creation to the first start
  uint32_t retries_max = 0;                    // of attempts that failed for an internal reason
  std::optional<SyncedDirectory> checkpoint;   // restored when the job starts again
  // event files and images; its uri is the job's own: tensorboard_uri()
  std::optional<SyncedDirectory> tensorboard;
  // time for which its hosts stay for a next job that matches (warm pool)
  int64_t keep_alive_seconds = 0;
  bool network_isolation = false;
  bool encrypt_traffic = false;  // between hosts
  Contract contract = Contract::training;
  std::optional<QueueOptions> queue;  // unset: a job without a queue
  // The following are set for jobs in queues.
  std::string display_name;  // the user's name for it, not unique; the job's key has its id
  std::string definition;    // ARN, with revision, of the definition that it was created from
  RetryOptions retry;
  std::vector<std::string> depends_on;        // ids of jobs that must succeed first
  std::vector<std::string> depends_on_alike;  // ids of arrays: child i depends on their child i
  ArrayOptions array;
  // The main host of a multi-node parallel job. The others start when it runs, and end when it
  // ends.
  std::optional<uint32_t> main_node;
  // For the user, decided when the job was created: one for each setting that has no effect here.
  std::vector<std::string> notes;
  Json request;

  // The queue under which the ledger lists it; "": none. Training jobs have a prefix with a slash,
  // which queue names lack.
  std::string listed_queue() const;
  uint32_t hosts() const;  // over all groups
  const InstanceGroup& group(HostIndex host) const;
  const std::string& instance_type(HostIndex host) const { return group(host).instance_type; }
  // The main host of a multi-node parallel job.
  std::optional<HostIndex> main_host() const;
  // True if the end of this host determines the end of the job: every host, or the main host only.
  bool decides(HostIndex host) const;
};

// A state that a host has reached, and when.
struct HostStep {
  HostState state = HostState::placed;
  Instant at;
};

// The state of a host, as known to control.
struct Host {
  HostState state = HostState::placed;
  std::string machine;  // where it was placed
  Share share;
  uint64_t facts_applied = 0;    // number of the last fact; facts up to it are repeats
  std::optional<int> exit_code;  // of the user's process; 128+n for signal n
  std::string failure;           // as its agent reported it, for FailureReason
  std::optional<Fault> fault;    // the cause of the failure
  // the order that ended its run early; none: it ended on its own
  StopCause stopped = StopCause::none;
  std::string staged_model;  // uploading, hosts after the first: key of its model tar; "": no files
  std::string address;       // in its gang's network, as its agent reported it; "": unknown
  Instant state_since;
  // The states that it has reached, in their order, each once; the last one is the current state.
  // Empty in records of earlier versions.
  std::vector<HostStep> steps = {};

  // Changes the state, and remembers when.
  void reach(HostState next, Instant at);
};

// Earlier attempts keep everything except their hosts.
struct Attempt {
  uint32_t number = 1;
  std::string token;  // fencing token: an agent with another token is obsolete and must exit
  AttemptState state = AttemptState::starting;
  std::vector<Host> hosts;
  // the host whose failure ended the gang; its reason is the job's
  std::optional<HostIndex> first_failed;
  // reason if it was interrupted, and another attempt follows; else ""
  std::string interruption;
  std::optional<Instant> interrupted;  // when an interruption was requested; unset: a host was lost
  bool preempted = false;              // interrupted by the scheduler, for a job with precedence
  Duration notice{};                   // between SIGTERM and SIGKILL of the user's processes
  JobNumber warm_pool = 0;             // the job whose hosts it reuses; 0: none
  // compute environment in which it was placed; "" without a queue
  std::string environment;
  // its machines may be reclaimed, which then counts as a failure
  bool spot = false;
  // after its end: of the host that failed first, else of the first host
  std::optional<int> exit_code;
  std::string failure;         // of the same host; "" if it has none
  std::optional<Fault> fault;  // of the same host: the cause of the failure
  std::string machine;         // of the same host
  Instant started;
  std::optional<Instant> training_started;  // its first host began to run
  std::optional<Instant> ended;

  // The billed training time.
  Duration ran(Instant now) const;
};

// The hosts of the last attempt, kept for the next job that requests the same.
struct WarmPool {
  WarmPoolState state = WarmPoolState::in_use;
  int64_t keep_alive_seconds = 0;    // the last updated value
  std::optional<Instant> available;  // when it became available
  std::optional<Instant> ended;      // when it was reused or terminated
  std::string reused_by;             // the job's name
  // Requires: `available` is set.
  Instant until() const { return *available + std::chrono::seconds(keep_alive_seconds); }
};

// An element of SecondaryStatusTransitions.
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
  // All instants of a job are in its own time: control's time plus this offset. Jumps of the wall
  // clock do not change it (docs/decisions/32). The instant of its creation is wall time.
  Duration clock_offset{};
  std::vector<Transition> transitions;  // the last one is the current phase
  // while waiting: the reason, the missing amount and its holder
  std::string wait_reason;
  // for the user: "each host was scaled to 1/2 of ml.m5.4xlarge .."
  std::string note;
  std::optional<Instant> stop_requested;
  StopCause stop_cause = StopCause::none;
  // Between SIGTERM and SIGKILL of its processes, after that request; 0: killed at once. Unset: as
  // configured.
  std::optional<Duration> stop_grace;
  Cancellation cancellation =
      Cancellation::no;             // for jobs in queues: the operation that stopped it
  std::string cancellation_reason;  // the reason in that request
  std::vector<JobNumber> awaits;    // jobs that must succeed before it may be placed
  JobNumber parent = 0;             // the array of which it is a child; 0: none
  // of an array: the children with lower indexes exist (array.hpp)
  uint32_t children_made = 0;
  // For an array: arrays of the same size. Its child i depends on their child i.
  std::vector<JobNumber> awaits_alike;
  std::optional<int64_t> new_priority;  // replaces QueueOptions::priority after a change
  std::optional<uint32_t> selected;     // the index in JobSpec::preferences that it was placed with
  std::vector<Attempt> attempts;        // the last one is the current one
  std::string failure_reason;           // as the APIs show it
  std::string model_uri;                // set after the upload
  std::string output_uri;
  std::optional<Instant> training_start;  // when the first host began to run; TrainingStartTime
  std::optional<Instant> training_end;
  std::optional<WarmPool> warm_pool;  // unset: none was requested

  Phase phase() const { return transitions.empty() ? Phase::starting : transitions.back().phase; }
  bool finished() const { return is_final(state); }
  // True for an array: its children are placed, never the array itself.
  bool is_array() const { return spec.array.size > 0 && parent == 0; }
  // Its priority among the jobs of its share; 0 for jobs without a queue.
  int64_t priority() const { return new_priority.value_or(spec.queue ? spec.queue->priority : 0); }
  // Makes the preference `selected`, if there is one with that index, the only group of the spec.
  void use_selected();
  // True if the machines of that attempt may be reclaimed.
  bool on_spot(const Attempt& of_it) const { return spec.spot || of_it.spot; }
  const Attempt* attempt() const { return attempts.empty() ? nullptr : &attempts.back(); }
  bool keeps_hosts() const { return warm_pool && warm_pool->state == WarmPoolState::available; }
  // True if it may still change.
  bool live() const { return !finished() || keeps_hosts(); }
  // Convert control's time to the job's time, and back.
  Instant own_time(Instant of_control) const { return of_control + clock_offset; }
  Instant control_time(Instant own) const { return own - clock_offset; }
  // The billed training time of all attempts.
  Duration ran(Instant now) const;
  // The part of it that counts towards max_runtime_seconds.
  Duration ran_of_max(Instant now) const;
};

// True if a job with spec `next` may reuse the hosts of a job with spec `kept`.
bool same_hosts(const JobSpec& kept, const JobSpec& next);

Json to_json(const Share&);
Json to_json(const Tag&);
Json to_json(const JobKey&);
Json to_json(const JobSpec&);
Json to_json(const Job&);
// All of a job except its spec, which does not change after its creation.
Json progress_json(const Job&);
Result<Share> share_from_json(const Json&);
Result<Tag> tag_from_json(const Json&);
Result<JobNumber> job_number_from_json(const Json&);
Result<JobKey> job_key_from_json(const Json&);
Result<JobSpec> job_spec_from_json(const Json&);
Result<Job> job_from_json(const Json&);

}  // namespace trainyard::domain

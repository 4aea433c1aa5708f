// A Job is a gang of hosts, each of which runs one container or process under the job contract. The
// hosts start together or not at all. Attempts are retried by policy, and usage is accounted. The
// resources of AWS's APIs are views of jobs, which the modules of api translate.
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

// Identifies a job: its name is unique within its region.
struct JobKey {
  std::string region;
  std::string name;
  auto operator<=>(const JobKey&) const = default;
};

// The number of a job, which the ledger assigns and never reuses.
using JobNumber = uint64_t;

// Identifies an attempt. Its text, "j17a1", is used in names of directories, bridges and cgroups.
struct AttemptId {
  JobNumber job = 0;
  uint32_t number = 0;  // 1, 2, .. within the job
  auto operator<=>(const AttemptId&) const = default;
  std::string text() const { return "j" + std::to_string(job) + "a" + std::to_string(number); }
};
// Parses "j17a1". Errors: invalid, for any other form.
Result<AttemptId> parse_attempt_id(std::string_view text);

// The index of a host in the gang, from 0. The name of the host is algo-(index+1).
using HostIndex = uint32_t;
inline std::string host_name(HostIndex index) { return "algo-" + std::to_string(index + 1); }

enum class InputMode { file, pipe, fast_file };
enum class Distribution { fully_replicated, sharded_by_s3_key };

// A directory of a shared file system that is used as a channel.
struct FileSystemSource {
  std::string id;    // id of the file system: "fs-0123456789abcdef0"
  std::string type;  // "EFS", "FSxLustre"
  std::string path;  // below the file system's root
  bool writable = false;
};

struct Channel {
  std::string name;
  std::string content_type;  // "": not given
  InputMode input_mode = InputMode::file;
  std::string compression;     // "None", "Gzip"
  std::string record_wrapper;  // "None", "RecordIO"
  std::string s3_data_type;    // "S3Prefix", "ManifestFile", "AugmentedManifestFile"
  std::string s3_uri;          // s3://bucket/prefix
  Distribution distribution = Distribution::fully_replicated;
  // attributes of an augmented manifest, in the order in its records
  std::vector<std::string> attribute_names;
  std::vector<std::string> groups;      // instance groups that receive the channel; empty: all
  std::optional<int64_t> shuffle_seed;  // unset: objects are in the order of their keys
  std::optional<FileSystemSource> file_system;  // instead of s3_uri

  bool is_of(const std::string& group) const;  // true if the group receives the channel
};

// A directory that is synchronised to S3 while the job runs.
struct SyncedDirectory {
  std::string uri;   // s3://bucket/prefix, without a slash at its end
  std::string path;  // in the container
};

// Returns the S3 directory of the TensorBoard files of a training job with a
// TensorBoardOutputConfig: OUTPUT_PATH/JOB/tensorboard-output, where SageMaker's SDKs expect them.
std::string tensorboard_uri(std::string output_path, std::string_view job_name);

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
  std::string name;  // "homogeneousCluster" if the request has no groups
  std::string instance_type;
  uint32_t count = 1;
  // what each host requests; unset: a whole instance of its type
  std::optional<Share> share = {};
  std::optional<Program> program = {};      // the program of its hosts; unset: the spec's program
  ContainerOptions container_options = {};  // in addition to program and share
};

struct Tag {
  std::string key;
  std::string value;
};

// The contract of a job's containers. training: the files, variables and exit rules of /opt/ml;
// plain: containers exactly as the job requests them.
enum class Contract { training, plain };
// prefix of the queue's name in listed_queue(), for training jobs
inline constexpr std::string_view kTrainingQueues = "service/";

// The user's request in a form that is independent of the API. `request` is the original request,
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
  // Alternatives to the only group, in order of preference: the first with free capacity is
  // selected. Until then `groups` has the first of them. Empty: the request has no alternatives.
  std::vector<InstanceGroup> preferences;
  int64_t volume_gib = 1;
  // the name of the user or role that created it; "" in records of earlier versions
  std::string principal;
  std::string role_arn;
  std::string output_uri;  // s3://bucket/prefix, without a slash at its end
  std::string output_kms_key;
  bool compress_model = true;  // true: to model.tar.gz; false: the files are stored below model/
  // limit over all attempts; for jobs in queues, limit of each attempt
  int64_t max_runtime_seconds = 86400;
  bool spot = false;                        // it may be interrupted, and is then started again
  std::optional<int64_t> max_wait_seconds;  // spot: from its creation to its end, including waits
  std::optional<int64_t> max_pending_seconds;  // from its creation to its first start
  uint32_t retries_max = 0;                    // limit of retries after internal failures
  std::optional<SyncedDirectory> checkpoint;   // restored when another attempt starts
  // event files and images; its uri is tensorboard_uri()
  std::optional<SyncedDirectory> tensorboard;
  // time for which its hosts are kept for a matching next job (warm pool)
  int64_t keep_alive_seconds = 0;
  bool network_isolation = false;
  bool encrypt_traffic = false;  // between hosts
  Contract contract = Contract::training;
  std::optional<QueueOptions> queue;  // unset: a job without a queue
  // The following are set for jobs in queues.
  std::string display_name;  // name from the user, not unique; the job's key has the id
  std::string definition;    // ARN with revision of the job definition
  RetryOptions retry;
  std::vector<std::string> depends_on;        // ids of jobs that must succeed first
  std::vector<std::string> depends_on_alike;  // ids of arrays: child i depends on their child i
  ArrayOptions array;
  // The main host of a multi-node parallel job. The others start when it runs, and end when it
  // ends.
  std::optional<uint32_t> main_node;
  // Texts for the user, made when the job was created: one for each setting that has no effect
  // here.
  std::vector<std::string> notes;
  Json request;

  // Returns the queue under which the ledger lists the job; "": none. For training jobs it has a
  // prefix with a slash, which names of queues cannot contain.
  std::string listed_queue() const;
  uint32_t hosts() const;  // over all groups
  const InstanceGroup& group(HostIndex host) const;
  const std::string& instance_type(HostIndex host) const { return group(host).instance_type; }
  // Returns the main host of a multi-node parallel job.
  std::optional<HostIndex> main_host() const;
  // Returns true if the job ends when this host ends: for every host, or only for the main host.
  bool decides(HostIndex host) const;
};

// A state that a host has reached, and the time of that.
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
  std::string failure;           // text from its agent, for FailureReason
  std::optional<Fault> fault;    // the cause of the failure
  // why its run was stopped early; none: it ended by itself
  StopCause stopped = StopCause::none;
  std::string staged_model;  // uploading, hosts after the first: key of its model tar; "": no files
  std::string address;       // its address in the gang's network, from its agent; "": unknown
  Instant state_since;
  // The states that it has reached, in order, each once; the last one is the current state. Empty
  // in records of earlier versions.
  std::vector<HostStep> steps = {};

  // Changes the state, and records the time.
  void reach(HostState next, Instant at);
};

// An attempt of a job. Attempts before the last one have no hosts.
struct Attempt {
  uint32_t number = 1;
  std::string token;  // fencing token: an agent with another token is obsolete and must exit
  AttemptState state = AttemptState::starting;
  std::vector<Host> hosts;
  // the host whose failure ended the gang; its failure is the failure of the job
  std::optional<HostIndex> first_failed;
  // the reason, if it was interrupted and another attempt follows; otherwise ""
  std::string interruption;
  std::optional<Instant> interrupted;  // when an interruption was requested; unset: a host was lost
  bool preempted = false;              // interrupted by the scheduler, for a job with precedence
  Duration notice{};                   // time between SIGTERM and SIGKILL of the user's processes
  JobNumber warm_pool = 0;             // the job whose hosts it reuses; 0: none
  // the compute environment in which it was placed; "": a job without a queue
  std::string environment;
  // true: its machines may be reclaimed, which counts as a failure
  bool spot = false;
  // true: its agents connect by TLS, with a certificate for this attempt
  bool mutual_tls = false;
  // The next four are set after its end, from the host that failed first or, if none failed, from
  // the first host.
  std::optional<int> exit_code;
  std::string failure;  // "": none
  std::optional<Fault> fault;
  std::string machine;
  Instant started;
  std::optional<Instant> training_started;  // when the first of its hosts ran
  std::optional<Instant> ended;

  // Returns the billed training time.
  Duration ran(Instant now) const;
};

// The hosts of the last attempt, which are kept for the next job that requests the same hosts.
struct WarmPool {
  WarmPoolState state = WarmPoolState::in_use;
  int64_t keep_alive_seconds = 0;    // the latest requested value
  std::optional<Instant> available;  // when it became available
  std::optional<Instant> ended;      // when it was reused or terminated
  std::string reused_by;             // name of the job that reused it
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
  // The instants of a job are in the job's own time: control's time plus this offset. Jumps of the
  // wall clock do not affect it (docs/decisions/32). Its creation is in wall time.
  Duration clock_offset{};
  std::vector<Transition> transitions;  // the last one is the current phase
  // while waiting: the pending reason, with the missing amount and the jobs that use it
  std::string wait_reason;
  // text for the user: "each host was scaled to 1/2 of ml.m5.4xlarge .."
  std::string note;
  std::optional<Instant> stop_requested;
  StopCause stop_cause = StopCause::none;
  // Time between SIGTERM and SIGKILL of its processes after that request; 0: they are killed at
  // once; unset: as configured.
  std::optional<Duration> stop_grace;
  // for jobs in queues: the operation that stopped it
  Cancellation cancellation = Cancellation::no;
  std::string cancellation_reason;  // the reason in that request
  std::vector<JobNumber> awaits;    // jobs that must succeed before it may be placed
  JobNumber parent = 0;             // the array of which it is a child; 0: none
  // array: number of children that have been made (array.hpp)
  uint32_t children_made = 0;
  // array: arrays of the same size; child i of this array depends on child i of each.
  std::vector<JobNumber> awaits_alike;
  std::optional<int64_t> new_priority;  // replaces QueueOptions::priority after a change
  std::optional<uint32_t> selected;     // index in JobSpec::preferences with which it was placed
  std::vector<Attempt> attempts;        // the last one is the current attempt
  std::string failure_reason;           // as the APIs show it
  std::string model_uri;                // set after the upload
  std::string output_uri;
  std::optional<Instant> training_start;  // when the first host ran; TrainingStartTime
  std::optional<Instant> training_end;
  std::optional<WarmPool> warm_pool;  // unset: none was requested

  Phase phase() const { return transitions.empty() ? Phase::starting : transitions.back().phase; }
  bool finished() const { return is_final(state); }
  // Returns true for an array: its children are placed, never the array itself.
  bool is_array() const { return spec.array.size > 0 && parent == 0; }
  // Returns its priority among the jobs of its share; 0 for jobs without a queue.
  int64_t priority() const { return new_priority.value_or(spec.queue ? spec.queue->priority : 0); }
  // Makes the preference `selected` the only group of the spec, if there is one with this index.
  void use_selected();
  // Returns true if the machines of this attempt may be reclaimed.
  bool on_spot(const Attempt& of_it) const { return spec.spot || of_it.spot; }
  const Attempt* attempt() const { return attempts.empty() ? nullptr : &attempts.back(); }
  bool keeps_hosts() const { return warm_pool && warm_pool->state == WarmPoolState::available; }
  // Returns true if the job may still change.
  bool live() const { return !finished() || keeps_hosts(); }
  // Convert control's time to the job's own time, and back.
  Instant own_time(Instant of_control) const { return of_control + clock_offset; }
  Instant control_time(Instant own) const { return own - clock_offset; }
  // Returns the billed training time of all attempts.
  Duration ran(Instant now) const;
  // Returns the part of it that counts towards max_runtime_seconds.
  Duration ran_of_max(Instant now) const;
};

// Returns the job with this number, or nullptr. Requires: `jobs` is ordered by number.
const Job* find_job(const std::vector<std::shared_ptr<const Job>>& jobs, JobNumber number);

// Returns true if a job with spec `next` may reuse the hosts of a job with spec `kept`.
bool same_hosts(const JobSpec& kept, const JobSpec& next);

Json to_json(const Share&);
Json to_json(const Tag&);
Json to_json(const JobKey&);
Json to_json(const JobSpec&);
Json to_json(const Job&);
// Returns the whole job except its spec, which does not change after its creation.
Json progress_json(const Job&);
Result<Share> share_from_json(const Json&);
Result<Tag> tag_from_json(const Json&);
Result<JobNumber> job_number_from_json(const Json&);
Result<JobKey> job_key_from_json(const Json&);
Result<JobSpec> job_spec_from_json(const Json&);
Result<Job> job_from_json(const Json&);

}  // namespace trainyard::domain

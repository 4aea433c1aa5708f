// Defines the messages between control plane and agent. Grammar: docs/formats/wire.md; codec:
// wire/codec.hpp.
//
// An agent opens a connection and sends Hello. The server answers Welcome (the last facts that it
// has) or Refused (the attempt has ended, or the token is outdated: the agent kills its processes
// and exits). Then facts go up on two tracks. The agent numbers those of each track from 1 without
// gaps, and spools them until they are acknowledged:
//
//   state track  StateFact: applied by control, acknowledged once the ledger has it. Never dropped.
//   data track   LogBatch, MetricBatch: acknowledged once observe has it. At spool_bytes_max the
//                oldest unsent log bytes are dropped, and a line reports how many.
//
// Orders go down: Stop, Credentials, PeersDrained, MainRuns. The server repeats them after each
// Welcome; repeating one is harmless. An agent whose allocation can serve another attempt sends
// Idle, and receives a NextOrder (docs/decisions/38).
//
// The two ends may run different releases. The agent sends its range of versions in Hello, and the
// server answers with the highest version that both support, or refuses if there is none:
//
//   version 1  (release 0.1.0) no Hello::oldest, allocation, served; no StateFact::address; no
//              Welcome::version; no Activity, Idle, NextOrder; unknown fields close the link
//   version 2  all messages and fields below; each end skips unknown messages, and unknown fields
//              at the end of a message
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "domain/image.hpp"
#include "domain/job.hpp"

namespace trainyard::wire {

inline constexpr uint32_t kVersion = 2;        // the latest that this program supports
inline constexpr uint32_t kVersionOldest = 1;  // the oldest that this program supports
// far larger than any batch of an agent; a longer frame is treated as an attack
inline constexpr size_t kFrameBytesMax = 8 << 20;

// -- up -----------------------------------------------------------------------------------------

struct Hello {
  // the latest version that both the agent and the server that wrote its order support
  uint32_t version = kVersion;
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string token;
  // The oldest version that the agent supports. For version 1 it equals `version`.
  uint32_t oldest = kVersionOldest;
  // The number of the Slurm job in which the agent runs, if this allocation can serve one attempt
  // after another; 0: none. If it is 0, neither this field nor the next is sent.
  uint64_t allocation = 0;
  uint32_t served = 0;  // number of earlier attempts that ran in the allocation
};

// Reports that a host reached a state. Repeated in the same state with another message, it reports
// progress; in `running` the message is a warning, and "" clears it. The valid other fields depend
// on the state (named in their comments).
struct StateFact {
  uint64_t number = 0;
  Instant at;
  domain::HostState state = domain::HostState::preparing;
  // for people: "Downloading the training image", or why the host failed
  std::string message;
  // draining, failed: exit code of the user's process; 128+n for signal n
  std::optional<int> exit_code;
  std::optional<domain::Fault> fault;  // failed
  // uploading, hosts after the first: object key of the model tar that the first host merges; "":
  // the host has no model files
  std::string staged_model;
  std::string model_uri;   // finished, first host: the URI of model.tar.gz
  std::string output_uri;  // finished: the URI of output.tar.gz; "": there is no output
  // draining and later: why the run was stopped early; none: it ended by itself. The agent sets
  // max_runtime itself when the order's runtime_left is over.
  domain::StopCause stopped = domain::StopCause::none;
  std::string address = {};  // preparing: the host's address in its gang's network
};

struct LogLine {
  Instant at;
  std::string text;  // UTF-8, no newline
};

struct LogBatch {
  uint64_t number = 0;
  std::vector<LogLine> lines;
};

struct MetricPoint {
  std::string name;
  Instant at;
  double value = 0;
  // true: utilisation of the host (dimension Host); false: a metric of the algorithm (dimension
  // TrainingJobName)
  bool of_host = false;
};

struct MetricBatch {
  uint64_t number = 0;
  std::vector<MetricPoint> points;
};

// -- down ---------------------------------------------------------------------------------------

struct Welcome {
  uint64_t state_acknowledged = 0;
  uint64_t data_acknowledged = 0;
  uint32_t version = 1;  // valid for the rest of the connection
  // The current time, in the job's own time (Order::issued); 0: unknown. The agent may have begun
  // long after its order was issued, if it waited in the queue of another scheduler.
  Instant now = {};
};

struct Refused {
  std::string reason;
};

enum class Track : uint8_t { state, data, other };  // other: a track of a later version

struct Acknowledge {
  Track track = Track::state;
  uint64_t number = 0;  // this and all before it are durable
};

// Orders the agent to send SIGTERM to the user's process, to wait for `grace`, and to send SIGKILL.
// The agent then drains and uploads as after an exit; after an interruption it uploads checkpoints
// only, no model or output.
struct Stop {
  domain::StopCause cause = domain::StopCause::user;
  Duration grace = 120s;
};

// Contains temporary keys of the job's role. Sent after Welcome and again well before they expire.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  Instant expires;
};

// Tells the first host that every other host has staged its model files, which it now merges.
struct PeersDrained {
  // object keys in host order; "": the host has no model files
  std::vector<std::string> staged_models;
};

// Tells the other hosts of a multi-node job that the main host runs, so they may start.
struct MainRuns {};

// Tells the agent that the server has applied the host's final fact: the agent may remove its spool
// and exit.
struct Goodbye {};

// -- transient messages: neither numbered nor spooled -------------------------------------------

// Up: reports the progress of a transfer to or from this host. Sent regularly, and once at the end.
// As all transient messages, it is lost if the link breaks.
struct Progress {
  std::string what;  // "channel train", "image", "model"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // 0: unknown
  bool finished = false;
};

// Down: starts an additional process in the container, for a user's terminal. The host answers with
// ShellData, whose last frame is ShellEnded. A shell ends when its link breaks.
struct OpenShell {
  uint64_t shell = 0;                // chosen by the server, never used again on this link
  std::vector<std::string> command;  // empty: a login shell
  bool terminal = true;
  std::string terminal_name;  // $TERM
  uint32_t columns = 80, rows = 24;
};

// In both directions: carries the payload of one frame of a shell (wire/shell.hpp).
struct ShellData {
  uint64_t shell = 0;
  std::string payload;
};

// Describes when a rank was last active. Durations count back from the time of sending.
struct RankActivity {
  uint32_t rank = 0;
  std::optional<Duration> output;      // since it last printed; unset: never, or not measured
  std::optional<Duration> collective;  // since it last completed a collective; unset: never
  uint64_t collectives = 0;            // number of completed collectives
};
// Measures the link from a rank to one of its peers.
struct LinkLoad {
  uint32_t peer = 0;        // rank of the peer in the group
  uint64_t busy_us = 0;     // time in which bytes for the peer were in transit
  uint64_t busy_bytes = 0;  // bytes that arrived in this time
};
// Describes the calls of a rank in its group (CallRecord of base/activity_table.hpp).
struct RankCalls {
  uint32_t rank = 0;  // the rank's number from its launcher
  uint64_t group = 0;
  uint32_t group_rank = 0;
  uint32_t group_ranks = 0;
  uint64_t completed = 0;
  uint8_t kind = 0;  // CallKind; 0: outside of calls
  uint64_t bytes = 0;
  uint64_t label = 0;
  Duration unchanged{};   // time since the rank last entered or left a call
  Duration since_beat{};  // inside a call: time since the rank last showed progress
  uint64_t inside_us = 0, outside_us = 0, loading_us = 0;
  std::vector<LinkLoad> links = {};
};
// Up: reports how long ago a host and its ranks were last active. Sent every few seconds while
// something changes.
struct Activity {
  std::optional<Duration> output;     // since any process of the host last printed; unset: never
  std::vector<RankActivity> ranks;    // the ranks in the host's activity table
  std::vector<RankCalls> calls = {};  // the ranks that describe their calls there
  // Time since the host last used more CPU than the idle threshold (kIdleHostCores +
  // kWaitingRankCores per rank, activity_watch.hpp). Sent only with `calls`.
  Duration idle{};
};

// Up: the agent can serve another attempt after this one. Sent before the final fact, and again on
// each new link until an order or a refusal arrives.
struct Idle {
  Duration time_left{};  // until the allocation ends
  // The container and its network are kept for a job to which may_follow() applies
  // (reconcile/host_reuse.hpp).
  bool keeps_host = false;
};

// Down: answers Idle.
struct NextOrder {
  // the next order (an Order); "": there is none, and the allocation is released
  std::string order;
  // true: for the kept container; false: for the program that started the agent, which makes a new
  // host
  bool same_host = false;
};

// Stands for a received message of a later version. It is ignored, and never sent.
struct Unknown {
  uint8_t kind = 0;
};

using Message = std::variant<Hello, StateFact, LogBatch, MetricBatch, Welcome, Refused, Acknowledge,
                             Stop, Credentials, PeersDrained, Goodbye, Progress, OpenShell,
                             ShellData, MainRuns, Activity, Idle, NextOrder, Unknown>;

// -- order file ---------------------------------------------------------------------------------

// Version of the order's format. Additional members do not change it: an agent ignores unknown
// members.
inline constexpr uint32_t kOrderVersion = 1;

// The certificate of an attempt's agents, as PEM.
struct AgentIdentity {
  std::string certificate;
  std::string key;  // secret
};
// Returns the common name in the certificate of an attempt's agents.
inline std::string agent_name(const domain::AttemptId& attempt) {
  return "agent of " + attempt.text();
}

// Contains everything that one host needs to run its part of one attempt. An agent reads it from a
// file at its start; it contains secrets, so it is never on a command line. The launcher's
// additions (network namespace, address, host table) are on the agent's command line.
struct Order {
  uint32_t version = kOrderVersion;
  domain::AttemptId attempt;
  std::string token;
  domain::HostIndex host = 0;
  domain::JobKey job;
  std::string job_arn;
  std::string account;
  domain::JobSpec spec;
  domain::Share share;
  Instant created;  // when the attempt was created, by the wall clock
  // when this order was issued, in the job's own time; the agent derives the times of facts from
  // it. 0: use the wall clock
  Instant issued = {};
  std::string wire_address;  // the server's listener for agents: "unix:/path"
  // "127.0.0.1:PORT": the server's port, to which the relay inside the job connects
  std::string api_address;
  // "http://127.0.0.1:PORT": URL of the object store, for the agent's own transfers
  std::string objects_endpoint;
  // The PEM of the authority that signed the server's certificate; "": the server is reached
  // without TLS. With it, api_address is reached by TLS if objects_endpoint is its https:// URL.
  std::string authority = {};
  // Set: the link uses TLS.
  std::optional<AgentIdentity> identity = {};
  domain::Image image;  // the resolved spec.image
  domain::EgressSettings egress_settings;
  std::map<std::string, std::string> file_systems;  // id -> directory, for channels that use them
  // environment variables that the job's API adds to those of its container
  std::map<std::string, std::string> variables;
  std::string log_stream;  // "<job>/algo-1-1763631900"
  // the rest of MaxRuntimeInSeconds, for this attempt; the agent enforces it itself
  Duration runtime_left{};
  Duration stop_grace = 120s;  // time between SIGTERM and SIGKILL when runtime_left is over
  // A host without output and CPU use for this time is reported as stalled; 0: never.
  int64_t stalled_after_seconds = 1800;
  // The host may run another job after this one (docs/decisions/26): its agent sends Idle before
  // its final fact.
  bool reuse_host = false;
  // If this machine permits no user namespaces, the container runs without one; otherwise the job
  // fails.
  bool best_effort_isolation = false;
  // Channels in File mode are copied before the script starts, even if they can be mounted.
  bool copy_channels = false;
  // The user and group under which jobs access shared directories (file_systems); set by the
  // config.
  uint32_t shared_user_id = 65534, shared_group_id = 65534;
  uint32_t wire_version = kVersion;  // the latest that the server supports; 1 if the order has none
};

}  // namespace trainyard::wire

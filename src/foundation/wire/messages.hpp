// Defines the messages between control plane and agent. Grammar: docs/formats/wire.md; codec:
// wire/codec.hpp.
//
// An agent opens a connection and sends Hello; the server answers Welcome (the last facts that it
// has) or Refused (the attempt has ended or the token is outdated: the agent kills its processes
// and ends). Then facts go up on two tracks, each numbered from 1 without gaps by the agent and
// spooled until acknowledged:
//
//   state track  StateFact: applied by control, acknowledged once the ledger has it. Never dropped.
//   data track   LogBatch, MetricBatch: acknowledged once observe has it. At spool_bytes_max the
//                oldest unsent log bytes are dropped, and a line reports how many.
//
// and orders go down: Stop, Credentials, PeersDrained, MainRuns. Orders are repeated after each
// Welcome; repeating one is harmless. An agent in an allocation that can serve another attempt says
// so by Idle, and gets a NextOrder (docs/decisions/38).
//
// The ends may have different releases. The agent names its versions in Hello, the server answers
// with the highest that both support; if there is none, it refuses. From version 2 on each end
// skips unknown fields at the end of a message, and unknown messages.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "domain/image.hpp"
#include "domain/job.hpp"

namespace trainyard::wire {

inline constexpr uint32_t kVersion = 2;        // the latest that this program supports
inline constexpr uint32_t kVersionOldest = 1;  // release 0.1.0's
// an agent's batches are far smaller; more is an attack
inline constexpr size_t kFrameBytesMax = 8 << 20;

// -- up -----------------------------------------------------------------------------------------

struct Hello {
  uint32_t version = kVersion;  // the latest that the agent and its order's server support
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string token;
  // that the agent supports; from version 2 on, before it `version`
  uint32_t oldest = kVersionOldest;
  // The allocation in which the agent runs, if it can serve one attempt after another: the number
  // of its Slurm job; 0: none. Sent where it is set, with the next field, from version 2 on.
  uint64_t allocation = 0;
  uint32_t served = 0;  // attempts before this one that the allocation has served
};

// A host reached a state, or (in its current state, with a message) reports its progress, or a
// warning while it is `running`, which "" ends. The state decides which further fields have a
// meaning.
struct StateFact {
  uint64_t number = 0;
  Instant at;
  domain::HostState state = domain::HostState::preparing;
  // for people: "Downloading the training image", why it failed
  std::string message;
  // draining, failed: of the user's process; 128+n for signal n
  std::optional<int> exit_code;
  std::optional<domain::Fault> fault;  // failed
  // uploading, hosts after the first: key of its model tar to merge; "" = no files
  std::string staged_model;
  std::string model_uri;   // finished, first host: the URI of model.tar.gz
  std::string output_uri;  // finished: the URI of output.tar.gz, if there is one
  // draining and later: the order that ended the run early; none: it ended by itself. The agent
  // sets max_runtime itself when the order's time is over.
  domain::StopCause stopped = domain::StopCause::none;
  std::string address = {};  // preparing: the host's, in its gang's network; from version 2 on
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
  bool of_host =
      // utilisation of the host (dimension Host), else the algorithm's (dimension TrainingJobName)
      false;
};

struct MetricBatch {
  uint64_t number = 0;
  std::vector<MetricPoint> points;
};

// -- down ---------------------------------------------------------------------------------------

struct Welcome {
  uint64_t state_acknowledged = 0;
  uint64_t data_acknowledged = 0;
  uint32_t version = 1;  // for the rest of the connection; sent from version 2 on
};

struct Refused {
  std::string reason;
};

enum class Track : uint8_t { state, data, other };  // other: a later version's

struct Acknowledge {
  Track track = Track::state;
  uint64_t number = 0;  // this and all before it are durable
};

// The agent sends SIGTERM to the user's process, waits, and sends SIGKILL; then drains and uploads
// as after an exit. After an interruption it uploads checkpoints only, no model or output.
struct Stop {
  domain::StopCause cause = domain::StopCause::user;
  Duration grace = 120s;
};

// Temporary keys of the job's role. Sent after Welcome and again well before they expire.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  Instant expires;
};

// For the first host: every other host has staged its model files to merge. Keys in host order, ""
// = no files.
struct PeersDrained {
  std::vector<std::string> staged_models;
};

// For the hosts that follow a main host: it runs, so they may start.
struct MainRuns {};

// The server has applied the host's final fact: the agent may remove its spool and end.
struct Goodbye {};

// -- transient: neither numbered nor spooled; lost with the link
// -------------------------------------

// Up: the progress of a transfer to or from this host. Sent regularly, and once at the end.
struct Progress {
  std::string what;  // "channel train", "image", "model"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // 0: unknown
  bool finished = false;
};

// Down: starts an additional process in the container, for a user's terminal. The host answers with
// ShellData until its last frame, ShellEnded; a shell ends with its link.
struct OpenShell {
  uint64_t shell = 0;                // chosen by the server, never used again on this link
  std::vector<std::string> command;  // empty: a shell
  bool terminal = true;
  std::string terminal_name;  // $TERM
  uint32_t columns = 80, rows = 24;
};

// In both directions: one frame's payload (wire/shell.hpp).
struct ShellData {
  uint64_t shell = 0;
  std::string payload;
};

// Up: how long ago a host and its ranks were last active, at the time of sending. Sent every few
// seconds while something happens.
struct RankActivity {
  uint32_t rank = 0;
  std::optional<Duration> output;      // unset: it has printed nothing, or that is not known
  std::optional<Duration> collective;  // since it last completed one; unset: none yet
  uint64_t collectives = 0;            // that it has completed
};
// How long the bytes of a rank for another one were on their way.
struct LinkLoad {
  uint32_t peer = 0;  // a rank of the group
  uint64_t busy_us = 0;
  uint64_t busy_bytes = 0;  // that arrived in this time
};
// The calls of a rank in its group (CallRecord of base/activity_table.hpp).
struct RankCalls {
  uint32_t rank = 0;  // that its launcher gave to it
  uint64_t group = 0;
  uint32_t group_rank = 0;
  uint32_t group_ranks = 0;
  uint64_t completed = 0;
  uint8_t kind = 0;  // CallKind; 0: outside of calls
  uint64_t bytes = 0;
  uint64_t label = 0;
  Duration unchanged{};  // since it last entered or left a call
  Duration beat{};       // inside a call: since it was last alive
  uint64_t inside_us = 0, outside_us = 0, loading_us = 0;
  std::vector<LinkLoad> links = {};
};
struct Activity {
  std::optional<Duration> output;   // of all processes of the host
  std::vector<RankActivity> ranks;  // that are known
  std::vector<RankCalls> calls = {};
  Duration idle{};  // since the host used more than hardly any processor; sent with calls
};

// Up: the host's attempt ends with the next final fact, and its allocation can serve another one.
// Sent before that fact, and again on each later link until an order or a refusal arrives. From
// version 2 on.
struct Idle {
  Duration time_left{};     // of the allocation
  bool keeps_host = false;  // the container and its network may serve a job that may_follow()
};

// Down: the answer to Idle. From version 2 on.
struct NextOrder {
  std::string order;       // "": there is none, and the allocation is released
  bool same_host = false;  // for the kept container: an Order; otherwise for the program that
                           // started the agent, which makes another host
};

// In both directions: a message of a later version. It is read and ignored, never sent.
struct Unknown {
  uint8_t kind = 0;
};

using Message = std::variant<Hello, StateFact, LogBatch, MetricBatch, Welcome, Refused, Acknowledge,
                             Stop, Credentials, PeersDrained, Goodbye, Progress, OpenShell,
                             ShellData, MainRuns, Activity, Idle, NextOrder, Unknown>;

// -- the order with which an agent starts (a file; never on the command line)
// ----------------------

// Version of the order's form. Additional members do not change it: an agent ignores unknown ones.
inline constexpr uint32_t kOrderVersion = 1;

// Everything that one host must know to run its part of one attempt. The launcher's additions
// (network namespace, address, host table) are on the agent's command line.
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
  Instant created;  // of the attempt, by the wall clock
  // of this order, in the job's own time, for facts. 0: by the wall clock
  Instant issued = {};
  std::string wire_address;  // the server's listener for agents: "unix:/path"
  // "127.0.0.1:PORT" of the server's one port, to which the in-job relay connects
  std::string api_address;
  // URL of the object store for the agent itself: "http://127.0.0.1:PORT"
  std::string objects_endpoint;
  domain::Image image;  // the resolved spec.image
  domain::EgressSettings egress_settings;
  std::map<std::string, std::string> file_systems;  // of the channels: id -> directory
  std::map<std::string, std::string> variables;     // that the job's API adds to its container's
  std::string log_stream;                           // "<job>/algo-1-1763631900"
  // the rest of MaxRuntimeInSeconds, for this attempt; the agent enforces it itself
  Duration runtime_left{};
  Duration stop_grace = 120s;  // after that, between SIGTERM and SIGKILL
  // a host without output and work for this time is reported as stalled; 0 = never
  int64_t stalled_after_seconds = 1800;
  // The host may run another job after this one (docs/decisions/26): it offers itself before it
  // sends its last fact.
  bool reuse_host = false;
  // If this machine permits no user namespaces, the container runs without one; otherwise the job
  // fails.
  bool best_effort_isolation = false;
  // Channels in File mode are copied before the script starts, also where they can be mounted.
  bool copy_channels = false;
  // The user and group of access to shared directories (file_systems): 65534, unless the config
  // sets others.
  uint32_t shared_user_id = 65534, shared_group_id = 65534;
  uint32_t wire_version = kVersion;  // the latest that the server supports; 1 if the order has none
};

}  // namespace trainyard::wire

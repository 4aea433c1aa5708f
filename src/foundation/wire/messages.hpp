// What control plane and agent say to each other. Grammar and sizes: docs/formats/wire.md; codec: wire/codec.hpp.
//
// An agent opens a connection and says Hello; the server answers Welcome (how far it has everything) or Refused (the
// attempt is over or the token is old: kill your processes and leave). Then facts come up on two tracks, each numbered
// from 1 without gaps by the agent and spooled until acknowledged:
//
//   state track  StateFact: applied by control, acknowledged once the ledger has it. Never dropped.
//   data track   LogBatch, MetricBatch: acknowledged once observe has it. At spool_bytes_max the oldest unsent log
//                bytes go, and a line says how many.
//
// and orders go down: Stop, Credentials, PeersDrained, MainRuns. Orders are repeated after each Welcome; repeating one is
// harmless.
//
// Either end may be of another release. The agent says in Hello which versions it speaks, the server answers with the
// highest that both do; where there is none, it refuses. From version 2 on a message may end with fields, and the stream
// may have messages, that the other end skips.
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

inline constexpr uint32_t kVersion = 2;            // the latest that this program speaks
inline constexpr uint32_t kVersionOldest = 1;      // release 0.1.0's
inline constexpr size_t kFrameBytesMax = 8 << 20;  // an agent's batches are far smaller; more is an attack

// -- up -----------------------------------------------------------------------------------------

struct Hello {
  uint32_t version = kVersion;  // the latest that the agent speaks, and its order's server as well
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string token;
  uint32_t oldest = kVersionOldest;  // that the agent speaks; said from version 2 on, before it is `version`
};

// A host reached a state, or (the state it is in, with a message) says how far it is, or what is odd about it while it
// is `running`: "" that nothing is any more. Which further fields mean something depends on the state.
struct StateFact {
  uint64_t number = 0;
  Instant at;
  domain::HostState state = domain::HostState::preparing;
  std::string message;                 // for people: "Downloading the training image", why it failed
  std::optional<int> exit_code;        // draining, failed: of the user's process; 128+n for signal n
  std::optional<domain::Fault> fault;  // failed
  std::string staged_model;  // uploading, hosts after the first: key of its model tar to merge; "" = no files
  std::string model_uri;     // finished, first host: where model.tar.gz is
  std::string output_uri;    // finished: where output.tar.gz is, when there is one
  // draining and later: the order that ended the run early; none: it ended by itself. The agent gives
  // max_runtime without being told when the order's time is over.
  domain::StopCause stopped = domain::StopCause::none;
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
      false;  // utilisation of the host (dimension Host), else the algorithm's (dimension TrainingJobName)
};

struct MetricBatch {
  uint64_t number = 0;
  std::vector<MetricPoint> points;
};

// -- down ---------------------------------------------------------------------------------------

struct Welcome {
  uint64_t state_acknowledged = 0;
  uint64_t data_acknowledged = 0;
  uint32_t version = 1;  // that both speak from here on; said from version 2 on
};

struct Refused {
  std::string reason;
};

enum class Track : uint8_t { state, data, other };  // other: a later version's

struct Acknowledge {
  Track track = Track::state;
  uint64_t number = 0;  // this and all before it are durable
};

// SIGTERM the user's process, wait, SIGKILL; then drain and upload as after an exit. When it was interrupted
// no model or output is uploaded, only checkpoints.
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

// To the first host: every other host has staged its model files; merge them. Keys in host order, "" = had no files.
struct PeersDrained {
  std::vector<std::string> staged_models;
};

// To the hosts that follow a main host: it runs, so they may start.
struct MainRuns {};

// The server has applied the host's final fact: the agent may remove its spool and end.
struct Goodbye {};

// -- of the moment: neither numbered nor spooled; what is lost with the link is not missed -----------

// Up: bytes that are under way to or from this host. Said now and then, and once when it is done.
struct Progress {
  std::string what;  // "channel train", "image", "model"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  // 0: not known
  bool finished = false;
};

// Down: one more process in the container, whose bytes go to somebody who types. The host answers with ShellData until
// its last frame, ShellEnded; a shell ends with the link it was opened over.
struct OpenShell {
  uint64_t shell = 0;                // given by the server, never used again on this link
  std::vector<std::string> command;  // empty: a shell
  bool terminal = true;
  std::string terminal_name;  // $TERM
  uint32_t columns = 80, rows = 24;
};

// Both ways: one frame's payload (wire/shell.hpp).
struct ShellData {
  uint64_t shell = 0;
  std::string payload;
};

// Both ways: a message of a later version. Read, never sent; it is ignored.
struct Unknown {
  uint8_t kind = 0;
};

using Message =
    std::variant<Hello, StateFact, LogBatch, MetricBatch, Welcome, Refused, Acknowledge, Stop, Credentials,
                 PeersDrained, Goodbye, Progress, OpenShell, ShellData, MainRuns, Unknown>;

// -- the order an agent is started with (a file; never on the command line) ------------------------

// Of the order's form. Members that are added do not change it: an agent ignores those that it does not know.
inline constexpr uint32_t kOrderVersion = 1;

// Everything that one host must know to run its part of one attempt. What the launcher adds (network namespace,
// address, host table) is on the agent's command line.
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
  Instant created;           // of the attempt, by the wall clock
  Instant issued = {};       // of this order, in the job's own time; facts go by it. 0: by the wall clock
  std::string wire_address;  // where the server listens for agents: "unix:/path"
  std::string api_address;   // "127.0.0.1:PORT" of the server's one port: what the in-job relay connects to
  std::string objects_endpoint;  // URL of the object store for the agent itself: "http://127.0.0.1:PORT"
  domain::Image image;           // what spec.image stands for
  domain::Outward outward;
  std::map<std::string, std::string> file_systems;  // of those that channels name: id -> directory
  std::map<std::string, std::string> variables;     // that the job's face adds to its container's
  std::string log_stream;                           // "<job>/algo-1-1763631900"
  Duration
      runtime_left{};  // of MaxRuntimeInSeconds, for this attempt; the agent sees to it when the server is away
  Duration stop_grace = 120s;            // then, between SIGTERM and SIGKILL
  int64_t stalled_after_seconds = 1800;  // without output and work, a host is said to hang; 0 = never
  // Its host may serve another job after this one (docs/decisions/26): it offers itself before it says its last fact.
  bool reuse_host = false;
  // Where this machine does not let a container have a user namespace, it runs without one; else the job fails.
  bool best_effort_isolation = false;
  // As whom the job reads and writes shared directories (file_systems): nobody, unless the config says more.
  uint32_t shared_user_id = 65534, shared_group_id = 65534;
  uint32_t wire_version = kVersion;  // the latest that the server speaks; 1 where the order does not say
};

}  // namespace trainyard::wire

// Decides what one host of an attempt does next: the pure core of the agent. The agent's loop and
// the simulated host run the same function; they differ in how they carry out its actions.
//
//   prepare --> pull --> mount --> run --> drain --> upload --> report --> gone
//      |          |        |        |        ^          ^          ^
//      |          |        |        +--exit--+          |          |
//      |          |        |        |                              |
//      +----------+--------+--------+---- failed or stopped before the process ran ----+
//   any --fenced--> gone
//
//   After SIGTERM to the agent (MachineReclaimed) the host stops as after an interruption, but ends
//   without a final fact, unless the server stops it as well: what becomes of the attempt depends on
//   why the machine is taken away, which the server learns from its launcher.
//
//   After a failure of drain, upload follows as well, so that output data is kept.
//
//   stage     its work                                              the fact when it begins
//   prepare   directories, temporary keys                           preparing
//   pull      channels' data, image                                 downloading
//   mount     contract files, mounts, in-job endpoints
//   run       (a host that follows a main host waits for MainRuns)
//             start the process; then it runs until it exits        running, once it has started
//   drain     last log lines; hosts after the first stage their     draining, with the exit code
//             model files next to the output
//   upload    first host: wait for the peers, merge, upload         uploading, with the staged key
//   report    undo the steps; wait for the server's Goodbye         finished or failed
//   gone      nothing: the program ends
//
// A quiet host (a plain job of one host: it has no data to fetch and no model to upload, and its
// API does not show these states) omits the facts in between: downloading, uploading, and draining
// unless it has failed.
//
// An event of the agent's own steps that cannot occur in a stage is a conflict. A message of the
// server may arrive at any time, twice, or late: it is stored or ignored, never an error.
//
// Threads: pure. Errors: conflict, naming stage and event.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

enum class Stage { prepare, pull, mount, run, drain, upload, report, gone };
inline constexpr int kStages = 8;
std::string_view to_string(Stage);

struct Failure {
  domain::Fault fault = domain::Fault::internal;
  std::string message;  // for FailureReason, without its first word
};

// The state of a host's run that decisions read. Made by initial_run(); changed only by next().
struct HostRun {
  domain::HostIndex host = 0;
  uint32_t hosts = 1;         // the hosts whose results are merged
  bool follows_main = false;  // its process starts when another host's runs
  bool quiet = false;         // the states between its start and its end are not reported

  Stage stage = Stage::prepare;
  bool begun = false;  // the work of the first stage was ordered
  bool main_runs = false;
  bool start_ordered = false;  // in run: false while it waits for the main host
  bool process_started = false;
  bool upload_ordered = false;  // in upload: false while the first host waits for its peers
  domain::StopCause stop = domain::StopCause::none;
  Duration grace{};
  bool reclaimed = false;  // stopped by MachineReclaimed, and by no order of the server
  // The stop that ended the run, or its upload, early.
  domain::StopCause stopped = domain::StopCause::none;
  std::optional<int> exit_code;
  std::optional<Failure> failure;  // the first one: later ones are its consequences
  std::string staged_model;
  std::optional<std::vector<std::string>> peers;  // from PeersDrained

  // True if the model must be uploaded: after exit code 0, or a stop by the user or a deadline. Not
  // after a failure of the gang, nor after an interruption: the gang starts again from checkpoints.
  bool keeps_model() const {
    return !failure && stop != domain::StopCause::host_failed &&
           stop != domain::StopCause::interrupted;
  }
  bool merges() const { return host == 0 && hosts > 1; }
};
// Returns the state before any event.
HostRun initial_run(const wire::Order& order);

// -- events ---------------------------------------------------------------------------------------

struct Begin {};             // the program has started
struct StepsDone {           // the ordered work is done; in run: the process has started
  std::string staged_model;  // set by drain; "" = there were no files
  std::string model_uri;     // set by upload
  std::string output_uri;    // set by upload
  std::string notice = {};   // set by run: a notice for the job about how it runs
};
struct StepsFailed {  // in any stage with work
  Failure failure;
};
struct ProcessExited {
  int code = 0;                                    // 128+n when ended by signal n
  domain::Fault fault = domain::Fault::algorithm;  // when the code is not 0
  // when the code is not 0: the text of the failure file
  std::string reason;
};
struct StopOrdered {
  domain::StopCause cause = domain::StopCause::user;
  Duration grace{};
};
// SIGTERM to the agent itself: its machine is needed for something else, and kills it soon.
struct MachineReclaimed {
  Duration grace{};
};
struct GraceOver {};  // the time of Terminate is over
struct PeersDrained {
  std::vector<std::string> staged_models;
};
struct MainRuns {};   // the process of the main host runs
struct Fenced {};     // Refused: another attempt is the current one, or this one has ended
struct Dismissed {};  // Goodbye: the final fact of this agent, or of another one, is applied

using Event = std::variant<Begin, StepsDone, StepsFailed, ProcessExited, StopOrdered,
                           MachineReclaimed, GraceOver, PeersDrained, MainRuns, Fenced, Dismissed>;
inline constexpr int kEvents = std::variant_size_v<Event>;

// -- actions, to be carried out in order ----------------------------------------------------------

struct Report {  // spool and send this fact; the caller assigns number and time
  wire::StateFact fact;
};
struct Work {  // carry out the steps of the stage; post StepsDone or StepsFailed once
  Stage stage;
};
struct Interrupt {};  // end the running work early; it still posts its event
struct Terminate {    // SIGTERM to the process, and GraceOver after `grace` if it has not exited
  Duration grace{};
};
struct Kill {};  // SIGKILL to every process of the host
// End the running work, then undo every step in reverse order, even those that never ran.
struct Undo {};
struct Leave {};  // end the program

using Action = std::variant<Report, Work, Interrupt, Terminate, Kill, Undo, Leave>;

struct Decision {
  HostRun run;
  std::vector<Action> actions;
};

Result<Decision> next(HostRun run, const Event& event);

}  // namespace trainyard::agent

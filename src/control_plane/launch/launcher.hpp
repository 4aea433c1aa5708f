// Launcher starts the agents of planned gangs on machines. It is the interface to this machine
// (local/), Slurm and Kubernetes.
//
// All calls are idempotent: control may repeat ensure() and remove() any number of times. A
// launcher knows an agent's command line and machine, but not its work. list() also returns the
// agents that an earlier server process started.
//
// Threads: callable from one thread at a time (control's reconcile loop). Errors of ensure():
// exhausted (the named resource ran out), unavailable (try again), denied or internal (this machine
// cannot do it; the message says what to install or allow).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/placement.hpp"

namespace trainyard::launch {

struct Machine {
  std::string name;
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
  // The device files of its GPUs, which are assigned whole; empty: all that the machine has.
  std::vector<std::string> gpu_devices = {};
  std::string kind = {};  // the kind, if the machine was added on demand; else ""
  // "room-1/rack-7": the longer the common prefix, the nearer are two machines.
  std::string topology = {};
};

// A kind of machine that a launcher can add and release.
struct MachineKind {
  std::string name;  // "c5.4xlarge"
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
  uint32_t coming = 0;        // requested machines that do not exist yet
  uint32_t machines_max = 0;  // the most that may exist at once
  std::string note = {};      // why some machines cannot be added: "n2: ResumeTimeout reached"
};

// One host of a gang to start.
struct Member : domain::Placement {
  std::string order;  // the content of the order file, which launchers do not interpret
};

struct Gang {
  domain::AttemptId attempt;
  std::string token;
  bool network_isolation = false;  // true: no egress from the gang's network
  bool encrypt_traffic = false;    // true: traffic between its hosts is encrypted
  std::string role_arn = {};       // the job's role, on which its egress may depend
  std::vector<Member> members;     // by host index
  // For launchers that use another scheduler (Slurm, Kubernetes), with its rules and limits.
  std::string queue = {};          // "": the job was not submitted to a queue
  std::string instance_type = {};  // the first host's
  std::string submitter = {};      // the name of the user or role that created the job; "": unknown
  Duration run_time_max = {};      // from the start to the end of its agents; 0: no limit
  bool of_array = false;           // the job is a child of an array
};

// An agent that this or an earlier server started.
struct Agent {
  domain::AttemptId attempt;
  std::string token;
  domain::HostIndex host = 0;
  bool alive = false;
  // A message of the underlying system: why the agent ended, or why it has not started; "":
  // unknown, or it runs.
  std::string note = {};
  // True: the agent reports that its attempt has ended and that it can run another one.
  bool idle = false;
  // True: the underlying system ends the agent in favour of other work, so that the job is not at
  // fault and waits for another attempt. A live agent has some time to stop, and `note` says why.
  bool preempted = false;
  // Set while it is unknown which attempt the agent runs: its machine. It may run any attempt that
  // has a host on that machine and is not listed. `attempt` is then {}.
  std::string unknown_on = {};
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Returns the machines on which hosts can be placed.
  virtual std::vector<Machine> machines() = 0;
  // Returns the kinds of machines that it can add; empty: the set of machines is fixed.
  virtual std::vector<MachineKind> kinds() { return {}; }
  // Requests a total number of machines of the kind, including existing machines and those that are
  // being started. New ones appear in machines() later. A machine that cannot be added no longer
  // counts in `coming`. Errors also: not_found, for an unknown kind.
  virtual Result<void> grow(const std::string& kind, uint32_t machines);
  // Releases a machine that grow() has added, if it still exists. Requires: it has no hosts.
  virtual Result<void> shrink(const std::string& machine);
  // Starts the gang, unless it runs. After an error nothing of it is left. It does not restart an
  // agent that has exited: list() shows it, and control decides.
  virtual Result<void> ensure(const Gang& gang) = 0;
  virtual std::vector<Agent> list() = 0;
  // Sets the function to call when list() or machines() may return something else, so that the
  // caller need not wait for its next look. It is called on any thread, and must not block. After
  // the return no earlier function is called. A launcher that notices changes only when it looks
  // calls none.
  virtual void on_change(std::function<void()> changed);
  // Kills the attempt's processes and removes everything that belongs to it: agents, containers,
  // bridge, namespaces, NAT rules, mounts, cgroups, spool. Does nothing if nothing is left.
  virtual Result<void> remove(domain::AttemptId attempt) = 0;
  // Passes the gang, of one host, to the idle agent of the ended attempt `from`. The agent keeps
  // everything that the launcher made for `from`; list() then shows it under the gang's attempt,
  // and nothing under `from`. Returns false, without a change, if that agent does not wait for
  // another attempt or this launcher does not support host reuse; then ensure() starts the gang.
  // Requires: the gang has the same machine, GPUs and network settings as `from`.
  virtual Result<bool> reuse_host(domain::AttemptId from, const Gang& gang);
};

inline Result<void> Launcher::grow(const std::string& kind, uint32_t) {
  return not_found("unknown kind of machine " + kind);
}
inline Result<void> Launcher::shrink(const std::string&) { return {}; }
inline void Launcher::on_change(std::function<void()>) {}
inline Result<bool> Launcher::reuse_host(domain::AttemptId, const Gang&) { return false; }

// Checks that this server may change the jobs of another scheduler. `why_not`: the reason, or "".
// Errors: unavailable, with the reason.
inline Result<void> check_writer(const std::string& why_not) {
  if (!why_not.empty()) return unavailable(why_not);
  return {};
}

}  // namespace trainyard::launch

// Launcher starts the agents of planned gangs on machines. One interface over this machine, Slurm
// and Kubernetes (local/ is the first).
//
// Level-triggered: control may call ensure() and remove() any number of times; repeating a call is
// harmless. A launcher knows an agent's command line and machine, but not its work. list() also
// returns the agents that an earlier server process started.
//
// Threads: callable from one thread at a time (control's reconcile loop). Errors: ensure: exhausted
// (a named resource ran out), unavailable (try again), denied or internal (this machine cannot do
// it; the message says what to install or allow).
#pragma once

#include <cstdint>
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
  // The device files of its GPUs, which are assigned whole; none: those that the machine has.
  std::vector<std::string> gpu_devices = {};
  std::string kind = {};  // of machines that were added on demand; "": it was always there
  // "room-1/rack-7": the longer the common prefix, the nearer are two machines
  std::string topology = {};
};

// A kind of machine that a launcher can add and release.
struct MachineKind {
  std::string name;  // "c5.4xlarge"
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
  uint32_t coming = 0;        // requested, not there yet
  uint32_t machines_max = 0;  // at once
};

// One host of a gang to start.
struct Member : domain::Placement {
  std::string order;  // bytes of the order file, opaque here
};

struct Gang {
  domain::AttemptId attempt;
  std::string token;
  bool network_isolation = false;  // no egress from the gang's own network
  bool encrypt_traffic = false;    // between its hosts
  std::string role_arn = {};       // of the job: its egress may depend on it
  std::vector<Member> members;     // by host index
  // For launchers over a scheduler of machines, which has rules and limits of its own.
  std::string queue = {};          // "": the job was not submitted to a queue
  std::string instance_type = {};  // of the first host
  std::string submitter = {};      // the name of the user or role that created the job; "": unknown
  Duration run_time_max = {};      // from the start to the end of its agents; 0: unknown
  bool of_array = false;           // the job is a child of an array
};

// One agent that a launcher knows, of this or an earlier server.
struct Agent {
  domain::AttemptId attempt;
  std::string token;
  domain::HostIndex host = 0;
  bool alive = false;
  // Human-readable text of the underlying system: why the agent ended, or why it has not started;
  // "": unknown, or it runs.
  std::string note = {};
  // The agent reports that its attempt has ended and that it can serve another one.
  bool idle = false;
  // A machine, while it is unknown which attempt this agent serves: any attempt that has a host on
  // that machine and is not listed. `attempt` is then {}.
  std::string unknown_on = {};
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // The machines on which hosts can be placed.
  virtual std::vector<Machine> machines() = 0;
  // The kinds that it can add; none: the set of machines is fixed.
  virtual std::vector<MachineKind> kinds() { return {}; }
  // Requests a total number of machines of the kind: present ones, those that are being started,
  // and as many more as needed. These appear in machines() later. A machine that cannot be added is
  // no longer counted in `coming`. Errors: also not_found, for an unknown kind.
  virtual Result<void> grow(const std::string& kind, uint32_t machines);
  // Releases a machine that grow() has added. Harmless when it is gone. Requires: nothing is on it.
  virtual Result<void> shrink(const std::string& machine);
  // Starts the gang or finds it running; on error nothing of it is left. A member that died stays
  // dead: list() shows it and control decides.
  virtual Result<void> ensure(const Gang& gang) = 0;
  virtual std::vector<Agent> list() = 0;
  // Kills whatever of the attempt still runs and removes every trace: agents, containers, bridge,
  // namespaces, NAT rules, mounts, cgroups, spool. Harmless when nothing is left.
  virtual Result<void> remove(domain::AttemptId attempt) = 0;
  // Passes the gang, of one host, to the idle agent of the attempt `from`, which has ended. The
  // agent keeps everything that the launcher made for `from`; list() then shows it under the gang's
  // attempt, and nothing under `from`. False: that agent does not wait for another attempt, or this
  // launcher does not support host reuse, and nothing has changed: ensure() starts the gang.
  // Requires: the gang gets what `from` got.
  virtual Result<bool> reuse_host(domain::AttemptId from, const Gang& gang);
};

inline Result<void> Launcher::grow(const std::string& kind, uint32_t) {
  return not_found("unknown kind of machine " + kind);
}
inline Result<void> Launcher::shrink(const std::string&) { return {}; }
inline Result<bool> Launcher::reuse_host(domain::AttemptId, const Gang&) { return false; }

}  // namespace trainyard::launch

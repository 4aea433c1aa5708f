// Decides what has to be done on which machine so that a cluster is as wanted.
//
// Reads what inspections found and what the controller's record says, and returns ordered steps. It
// returns none if everything is as wanted, so each command can be repeated. Equal arguments give
// equal plans.
//
// Threads: pure functions. Errors: invalid and conflict, about the controller, without which
// nothing is done. Faults of other machines are part of the plan (PlannedMachine::problem).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cluster_setup/cluster_record.hpp"
#include "cluster_setup/machine_facts.hpp"

namespace trainyard::cluster_setup {

// munge rejects credentials that are older than five minutes, or from the future.
inline constexpr int64_t kClockSecondsMax = 120;

// Phases follow one another; the machines do those of one phase at the same time.
enum class Phase {
  // Machines that cannot do these do not join, or do not leave:
  drain,    // no job may run on a leaving node
  undo,     // on leaving machines
  prepare,  // notes for undoing
  packages,
  // The others know by now which machines there are:
  record,
  key,  // munge's, on the controller
  files,
  munge,
  controller,  // slurmctld
  nodes,       // slurmd
  check,       // nodes are usable
  dissolve,    // undoes the controller, when it is the last machine
};
inline constexpr Phase kLastPhaseOfMembership = Phase::packages;

// Content that only the runner can read.
enum class Content { none, munge_key, program };

struct Step {
  Phase phase = Phase::prepare;
  size_t machine = 0;          // index in Plan::machines
  bool on_controller = false;  // runs there, although it is about the machine
  std::string text;            // "install munge, slurmd"
  std::string reason;          // "new file"; "" = it says itself
  std::string script;          // with Content::none
  Content content = Content::none;
  std::string program;                // with Content::program: its name
  std::vector<std::string> services;  // with content: those that must be restarted afterwards
  Duration at_most = 60s;
};

// Candidate is a machine that is, or may become, part of the cluster.
struct Candidate {
  std::string destination;             // "" = this machine, as the controller only
  std::optional<MachineRecord> known;  // from the controller's record
  std::optional<MachineFacts> facts;
  std::string problem;        // why there are no facts, or which step failed
  int64_t clock_seconds = 0;  // by how much its clock is ahead of the runner's
  bool leaves = false;
};

struct Wish {
  std::string name = "trainyard";  // used for a new cluster
  bool controller_runs_jobs = true;
  std::string controller_address;  // for a new cluster; "" = chosen from what was found
  bool dissolve = false;           // all machines leave
  bool force = false;   // cancel jobs of leaving nodes; replace files that were changed by hand
  bool forget = false;  // let machines leave that do not answer
  std::map<std::string, std::string> programs;  // on this machine: name -> SHA-256
};

struct PlannedMachine {
  std::string destination;
  std::string name;       // its host's; "" = unknown
  std::string problem;    // why it is left alone; "" = none
  std::string forgotten;  // why it leaves although nothing can be undone there; "" = it answers
  bool joins = false, leaves = false;
};

struct Plan {
  ClusterRecord record;  // as it will be; without machines if the cluster is dissolved
  std::vector<PlannedMachine> machines;  // like the candidates
  std::vector<Step> steps;               // by phase, then by machine
};

// `machines`: the controller first, then those of the record, then those that join.
Result<Plan> plan(const std::optional<ClusterRecord>& record,
                  const std::vector<Candidate>& machines, const Wish& wish);

}  // namespace trainyard::cluster_setup

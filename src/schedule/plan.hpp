// Decides which waiting jobs start now, and on which machines.
//
// Reads a snapshot and answers with a plan; touches nothing else. Equal arguments give equal plans, so a plan
// can be replayed from the ledger and a bug from its seed.
//
// The more urgent first, and among equals in the order of submission, without overtaking: the first job that must wait for others to end holds back
// all after it, so that a large gang is not starved by small ones. A gang that not even empty machines could
// hold waits too, but holds nobody back: no end of another job would help it, only more machines.
//
// A gang is placed whole or not at all. Machines are filled in the launcher's order; where that does not hold the gang,
// all other ways are looked at, within kLayoutStepsMax.
//
// The hosts that a finished job keeps (a pool) are held like any other's, until a job comes that may take them over: it
// starts on them at once, whoever else waits.
//
// A job of a queue is placed in the first of its environments that has room for it within its limit. One that no
// environment has room for waits, and holds back those behind it in these environments, but nobody else.
//
// Threads: stateless, call from anywhere.
// Errors:  none. A job that fits nowhere is an answer (Wait, with its reason).
// Units:   cpus are vCPU, may be fractions; memory is bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/batch.hpp"
#include "domain/job.hpp"

namespace trainyard::schedule {

struct Machine {
  std::string name;
  domain::Share total;
};

// A part of a machine that a placed host holds.
struct Held {
  std::string holder;  // as people know it: "training-job/mnist"
  std::string machine;
  domain::Share share;
  std::string environment = {};  // "" = in none
};

// A limit to what the jobs in it hold together.
struct Environment {
  std::string name;     // as people know it; no two are the same
  double cpus_max = 0;  // 0: none
};

// What one host of a gang asks for.
struct Ask {
  std::string instance_type;
  domain::Share share;
};

struct Waiting {
  domain::JobNumber job = 0;
  std::string name;  // as people know it
  std::vector<Ask> hosts;
  std::vector<domain::JobNumber> pools;  // that it may take over, best first
  int64_t priority = domain::kPriorityOfOthers;
  std::vector<std::string> environments = {};  // that it may be placed in, best first; empty: it needs none
};

struct Placement {
  std::string machine;
  domain::Share share;
};

struct Pool {
  domain::JobNumber of = 0;  // the job that left it
  std::string holder;        // as people know it: "the warm pool of training-job/mnist"
  std::vector<Placement> hosts;
};

struct Snapshot {
  std::vector<Machine> machines;
  std::vector<Held> held;
  std::vector<Waiting> waiting;
  std::vector<Pool> pools;
  std::vector<Environment> environments = {};
};

struct Policy {
  // On one machine, a gang that asks for more than there is at all is scaled down as a whole, each host to
  // 1/n of the machine. GPUs are not divided: hosts get what whole GPUs there are for each, or none.
  bool scale_gangs = false;
};

struct Start {  // one placement per host of the gang: all or none
  domain::JobNumber job = 0;
  std::vector<Placement> hosts;
  std::string note;            // what the user should know of it; "" when he got what he asked for
  domain::JobNumber pool = 0;  // it takes over the hosts that this job left; 0: nobody's
  std::string environment = {};
};

struct Wait {  // shown to the user as is
  domain::JobNumber job = 0;
  std::string reason;
};

struct Plan {
  std::vector<Start> starts;
  std::vector<Wait> waits;
};

// Steps of looking for a layout of one gang: some milliseconds. What is not found by then waits, as if there was none.
inline constexpr size_t kLayoutStepsMax = 20'000;

// Requires: snapshot.waiting is ordered by submission, without repeats; names of machines differ.
// Ensures:  no machine is promised more than it has; each waiting job appears exactly once.
Plan plan(const Snapshot& snapshot, const Policy& policy, Instant now);

// What a host of this type asks for. Errors: invalid, for a type whose size is not known.
Result<Ask> ask_for(std::string_view instance_type);
Result<Ask> ask_of(const domain::InstanceGroup& group);

}  // namespace trainyard::schedule

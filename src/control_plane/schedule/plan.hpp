// Decides which waiting jobs start now and on which machines, who must give way to them, and says to each of the others
// why it waits and, where that can be known, when it starts at the latest.
//
// Reads a snapshot and answers with a plan; touches nothing else. Equal arguments give equal plans, so a plan
// can be replayed from the ledger and a bug from its seed.
//
// Who goes first. Jobs stand in lines (job queues; training jobs of no queue share one). Lines of higher priority go
// first, equal ones by whose next job was submitted first. Within a line: in the order of submission; or whichever share
// has had least for its weight (fair share, order.hpp); or by priority within quota shares (quota.hpp).
//
// Who may pass. The first job that must wait for machines is promised them for the instant at which they will be free if
// each running job takes all the time that it may (EASY backfill). Those behind it start now only where that cannot
// delay it: they end before then, or use what it will not need. Where an end is not known, nobody passes on machines
// that the first could use. A job that waits for a limit holds back only those that need the same limit; a gang that not
// even empty machines could hold waits, but holds nobody back.
//
// Where. A gang is placed whole or not at all, on as few machines as hold it, as near to each other as the topology
// allows; one host is put where it leaves the least room unused.
//
// The hosts that a finished job keeps (a pool) are held like any other's, until a job comes that may take them over: it
// starts on them at once, whoever else waits.
//
// Threads: stateless, call from anywhere.
// Errors:  none. A job that fits nowhere is an answer (Wait, with its reason).
// Units:   cpus are vCPU, may be fractions; memory is bytes; usage is vCPU seconds.
// Sources: EASY backfill: Lifka 1995, "The ANL/IBM SP scheduling system". Quota shares: AWS Batch's documentation, and
//          Kueue's cohorts for lending and taking back.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/shared_text.hpp"
#include "base/time.hpp"
#include "domain/batch.hpp"
#include "domain/job.hpp"

namespace trainyard::schedule {

struct Machine {
  std::string name;
  domain::Share total;
  std::string place = {};  // "room-1/row-2/rack-7": the longer the common beginning, the nearer
};

// Something counted that jobs need besides machines and hold while they run: vCPU of a compute environment, instances of
// a service environment, a consumable resource, a quota of a principal.
struct Limit {
  std::string name;  // as people know it: "vCPU of compute environment small"
  double total = 0;
  double used_besides = 0;    // by others than the running jobs of the snapshot
  std::string remedy = {};    // what to do when a job needs more than the total: "raise its maxvCpus"
  bool environments = false;  // it is the size of a compute or service environment
};
struct Need {
  size_t limit = 0;  // index in Snapshot::limits
  double amount = 0;
  bool cpus = false;      // the amount is what the gang's hosts are given of vCPU when they are placed
  bool for_good = false;  // does not come back when the job ends
};

// -- lines

// Of a line with fair share. A share that weighs w should get in proportion to 1/w (AWS's weightFactor).
struct FairShare {
  struct Share {
    std::string name;
    double weight = 1;
    double usage = 0;  // of the past, decayed, until now; running jobs' time until now is in it
  };
  std::vector<Share> shares;  // those that are not named here have weight 1 and no usage
  Duration decay{};           // the window of `usage`
  double reservation = 0;  // 0..0.99: that part, to the power of active shares, is kept for those not active
  std::vector<size_t> reserves = {};  // the limits (vCPU of its environments) of which it is kept
  Duration lasts = {};                // how long its jobs hold what they have, on the average; 0: not known
};

// A part of a line with a capacity of its own, which it may lend and borrow (quota.hpp).
struct QuotaShare {
  struct Quota {
    std::string unit;  // "NUM_INSTANCES", "ml.p4d.24xlarge", ..
    double capacity = 0;
  };
  std::string name;
  std::vector<Quota> quotas;
  bool lends = false;
  bool borrows = false;
  std::optional<double> borrow_max;  // of its own capacity, 1 = as much again; nothing: as much as there is
  bool preempts_within = false;      // its more urgent jobs take the place of its less urgent ones
};
// What a job takes of a quota share. Units that the share has no quota for are not limited.
struct Demand {
  std::string unit;
  double amount = 0;
};

struct Line {
  std::string name;  // as people know it: "job queue nightly"
  int64_t priority = domain::kPriorityOfOthers;
  std::optional<FairShare> fair = {};
  std::vector<QuotaShare> quota_shares = {};  // not empty: its jobs name one of them
};

// Where a job may be placed, and what it then needs.
struct Choice {
  std::string environment = {};  // as people know it; "": none
  std::vector<Need> needs = {};
  std::vector<std::string> instance_types = {};  // which machines may be made for it (growth.hpp)
};

// Best first. Copies share them: what all jobs of a queue may choose from is there once.
class Choices {
 public:
  Choices() = default;
  Choices(std::initializer_list<Choice> all) : Choices(std::vector<Choice>(all)) {}
  explicit Choices(std::vector<Choice> all)
      : all_(std::make_shared<const std::vector<Choice>>(std::move(all))) {}

  const std::vector<Choice>& all() const {
    static const std::vector<Choice> none;
    return all_ ? *all_ : none;
  }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  bool empty() const { return all().empty(); }
  const Choice& front() const { return all().front(); }
  // Copies of one. Others may still be equal.
  bool same_as(const Choices& other) const { return all_ == other.all_; }

 private:
  std::shared_ptr<const std::vector<Choice>> all_;
};

// -- jobs

// So many equal hosts of a gang.
struct Ask {
  std::string instance_type;
  domain::Share share;  // of each
  uint32_t count = 1;
};

struct Placement {
  std::string machine;
  domain::Share share;
};

struct Waiting {
  domain::JobNumber job = 0;
  std::string name;                           // as people know it: "training-job/mnist"
  std::vector<Ask> asks;                      // hosts in the order of their index
  std::vector<domain::JobNumber> pools = {};  // that it may take over, best first
  size_t line = 0;                            // index in Snapshot::lines
  std::string share = {};                     // of a line with fair share, or a quota share's name
  int64_t priority = 0;                       // among those of its share: higher first
  Choices choices = {};                    // that it may be placed in; none: anywhere, it needs nothing else
  std::vector<Demand> demands = {};        // of its quota share
  std::optional<Duration> lasts_max = {};  // once it has started it is over by then; nothing: not known
};

// Holds machines, limits and quota. So do remains of ended attempts, until they are gone.
struct Running {
  domain::JobNumber job = 0;  // 0: no job that could give way
  std::string name;
  std::vector<Placement> hosts;
  std::optional<size_t> line = {};
  std::string share = {};
  int64_t priority = 0;
  std::vector<Need> needs = {};
  std::vector<Demand> demands = {};
  std::optional<Instant> ends_by = {};  // at the latest; nothing: not known
  Instant started = {};
  bool gives_way = false;  // may be preempted for its quota share's sake
  bool leaving = false;    // was told to end: is not preempted again
};

struct Pool {
  domain::JobNumber of = 0;  // the job that left it
  std::string holder;        // as people know it: "the warm pool of training-job/mnist"
  std::vector<Placement> hosts;
  std::optional<Instant> until = {};
};

struct Snapshot {
  std::vector<Machine> machines;
  std::vector<Limit> limits = {};
  std::vector<Line> lines = {};  // at least one, when somebody waits
  std::vector<Running> running = {};
  std::vector<Waiting> waiting = {};  // by job, ascending
  std::vector<Pool> pools = {};
  Duration clock_offset = {};  // added to instants that people read
};

struct Policy {
  // On one machine, a gang that asks for more than there is at all is scaled down as a whole, each host to
  // 1/n of the machine. GPUs are not divided: hosts get what whole GPUs there are for each, or none.
  bool scale_gangs = false;
};

// -- the plan

struct Start {  // one placement per host of the gang: all or none
  domain::JobNumber job = 0;
  std::vector<Placement> hosts;
  std::string note = {};         // what the user should know of it; "" when he got what he asked for
  domain::JobNumber pool = 0;    // it takes over the hosts that this job left; 0: nobody's
  std::string environment = {};  // of the choice that was taken
};

// What a job that waits would need in order to start.
enum class Lack {
  other,        // its turn at a limit or quota, or something that no machine brings
  room,         // on machines that others use or were promised
  machine,      // even empty, the machines could not hold it
  environment,  // it is larger than each of those that it may be placed in ever lets it be
};

struct Wait {  // shown to the user as is
  domain::JobNumber job = 0;
  SharedText reason;  // its end says by when it starts, where that is known
  std::optional<Instant> starts_by = {};
  Lack lack = Lack::other;
};

// A running job that must give its place to a waiting one. It will wait again.
struct Preemption {
  domain::JobNumber job = 0;
  std::string reason;  // "training-job/b of quota share red needs back what quota share blue has borrowed"
};

struct Plan {
  std::vector<Start> starts;
  std::vector<Wait> waits;  // who goes first first
  std::vector<Preemption> preemptions;
};

// Steps of looking for a layout of one gang: some milliseconds. What is not found by then waits, as if there was none.
inline constexpr size_t kLayoutStepsMax = 20'000;

// Requires: snapshot.waiting is ordered by job, without repeats; names of machines differ; indices are valid.
// Ensures:  no machine, limit or quota is promised more than it has; each waiting job appears exactly once.
Plan plan(const Snapshot& snapshot, const Policy& policy, Instant now);

// What hosts of this type ask for. Errors: invalid, for a type whose size is not known.
Result<Ask> ask_for(std::string_view instance_type);
Result<Ask> ask_of(const domain::InstanceGroup& group);  // with its count

}  // namespace trainyard::schedule

// Decides which waiting jobs start now and on which machines, and which running jobs are preempted.
// Each other job gets its pending reason and, where it can be known, its latest start.
//
// Reads a snapshot and returns a plan; touches nothing else. Equal arguments give equal plans, so a
// plan can be replayed from the ledger and a bug from its seed.
//
// Order. Jobs wait in queues (job queues; training jobs without a queue share one). Queues of
// higher priority go first, queues of equal priority by the submission of their next job. Within a
// queue jobs go in the order of submission; or the share that has used least for its weight goes
// first (fair share, order.hpp); or jobs go by priority within quota shares (quota.hpp).
//
// Backfill. The first job that must wait for machines gets a reservation: the instant at which they
// will be free if each running job takes its longest time (EASY backfill). Later jobs start now
// only if they cannot delay it: they end before then, or use what it will not need. If an end is
// unknown, later jobs do not use machines that the first job could use. A job that waits for a
// limit delays only jobs that need the same limit. A gang that even empty machines could not hold
// waits, but delays no other job.
//
// Placement. A gang is placed whole or not at all, on as few machines as hold it, as near to each
// other as the topology allows; a single host is put where it leaves the least capacity unused.
//
// Alternatives. A job that does not start as requested starts with the first of its alternatives
// with which it can (preferences.hpp). While none has capacity, it waits as requested.
//
// Warm pools. The hosts that a finished job keeps (a pool) are held like those of a running job,
// until a job arrives that may take them over: it starts on them at once, before all other jobs.
//
// Threads: stateless, call from anywhere.
// Errors:  none. A job that fits nowhere is part of the answer (Wait, with its reason).
// Units:   cpus are vCPU, may be fractions; memory is bytes; usage is vCPU seconds.
// Sources: EASY backfill: Lifka 1995, "The ANL/IBM SP scheduling system". Quota shares: AWS Batch's
// documentation, and Kueue's cohorts for lending and reclaiming.
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
#include "domain/placement.hpp"

namespace trainyard::schedule {

struct Machine {
  std::string name;
  domain::Share total;
  std::string topology = {};  // "room-1/row-2/rack-7": the longer the common prefix, the nearer
};

// A counted resource that jobs need in addition to machines and hold while they run: vCPU of a
// compute environment, instances of a service environment, a consumable resource, a quota of a
// principal.
struct Limit {
  std::string name;  // as users see it: "vCPU of compute environment small"
  double total = 0;
  double used_besides = 0;  // used, but not by the running jobs of the snapshot
  // The remedy when a job needs more than the total: "raise its maxvCpus".
  std::string remedy = {};
  bool environments = false;  // the limit is the size of a compute or service environment
};
struct Need {
  size_t limit = 0;  // index in Snapshot::limits
  double amount = 0;
  bool cpus = false;      // the amount is the vCPU that the gang's hosts get when they are placed
  bool for_good = false;  // does not come back when the job ends
};

// -- queues

// The state of a queue with fair share. A share with weight w should get a part in proportion to
// 1/w (AWS's weightFactor).
struct FairShare {
  struct Share {
    std::string name;
    double weight = 1;
    double usage = 0;  // past usage, decayed, until now; includes the running jobs' time until now
  };
  std::vector<Share> shares;  // a share that is not listed has weight 1 and no usage
  Duration decay{};           // the window of `usage`
  // 0..0.99: this part, to the power of the number of active shares, is kept for inactive shares.
  double reservation = 0;
  std::vector<size_t> reserves = {};  // the limits (vCPU of its environments) of which it is kept
  Duration lasts = {};                // the average duration of its jobs; 0: unknown
};

// A part of a queue with its own capacity, which it may lend, and which may borrow (quota.hpp).
struct QuotaShare {
  struct Quota {
    std::string unit;  // "instances", "ml.p4d.24xlarge", ..
    double capacity = 0;
  };
  std::string name;
  std::vector<Quota> quotas;
  bool lends = false;
  bool borrows = false;
  // How much it may borrow at most, relative to its own capacity: 1 doubles it. nullopt: unlimited.
  std::optional<double> borrow_max;
  bool preempts_within = false;  // its jobs of higher priority preempt those of lower priority
};
// An amount that a job takes from a quota share. Units without a quota are not limited.
struct Demand {
  std::string unit;
  double amount = 0;
};

// The priority of training jobs without a queue.
inline constexpr int64_t kPriorityOfOthers = 1;

struct Queue {
  std::string name;  // as users see it: "job queue nightly"
  int64_t priority = kPriorityOfOthers;
  std::optional<FairShare> fair = {};
  std::vector<QuotaShare> quota_shares = {};  // not empty: each of its jobs names one of them
};

// An environment in which a job may be placed, and the job's needs there.
struct Choice {
  std::string environment = {};  // as users see it; "": none
  std::vector<Need> needs = {};
  // The types of machines that may be added for it (growth.hpp); empty: all.
  std::vector<std::string> instance_types = {};
};

// The choices of a job, best first. Copies share them: all jobs of a queue refer to one list.
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
  // Returns true if both are copies of one list. Different lists may still be equal.
  bool same_as(const Choices& other) const { return all_ == other.all_; }

 private:
  std::shared_ptr<const std::vector<Choice>> all_;
};

// -- jobs

// A number of equal hosts of a gang.
struct HostRequest {
  std::string instance_type;
  domain::Share share;  // the resources of each host
  uint32_t count = 1;
};

using domain::Placement;

// Other hosts that a job accepts, with its needs on them.
struct Alternative {
  std::vector<HostRequest> requests;
  Choices choices = {};
  std::vector<Demand> demands = {};
};

struct WaitingJob {
  domain::JobNumber job = 0;
  std::string name;                           // as users see it: "training-job/mnist"
  std::vector<HostRequest> requests;          // hosts in the order of their index
  std::vector<domain::JobNumber> pools = {};  // warm pools that it may take over, best first
  size_t queue = 0;                           // index in Snapshot::queues
  std::string share = {};                     // its fair share or quota share in the queue
  int64_t priority = 0;                       // among the jobs of its share: higher first
  // Empty: it may be placed anywhere and needs no limit.
  Choices choices = {};
  std::vector<Demand> demands = {};  // what it takes from its quota share
  // Its longest time from start to end; nullopt: unknown.
  std::optional<Duration> lasts_max = {};
  // They replace requests, choices and demands; best first.
  std::vector<Alternative> alternatives = {};
};

// A job that holds machines, limits and quota; or an ended attempt whose hosts still exist.
struct Running {
  domain::JobNumber job = 0;  // 0: cannot be preempted
  std::string name;
  std::vector<Placement> hosts;
  std::optional<size_t> queue = {};
  std::string share = {};
  int64_t priority = 0;
  std::vector<Need> needs = {};
  std::vector<Demand> demands = {};
  std::optional<Instant> ends_by = {};  // its latest end; nullopt: unknown
  Instant started = {};
  bool gives_way = false;  // may be preempted for its quota share
  bool leaving = false;    // it was stopped and is ending: it is not preempted again
};

struct Pool {
  domain::JobNumber of = 0;  // the finished job that left it
  std::string holder;        // as users see it: "the warm pool of training-job/mnist"
  std::vector<Placement> hosts;
  std::optional<Instant> until = {};
};

struct Snapshot {
  std::vector<Machine> machines;
  std::vector<Limit> limits = {};
  std::vector<Queue> queues = {};  // at least one if jobs wait
  std::vector<Running> running = {};
  std::vector<WaitingJob> waiting = {};  // by job, ascending
  std::vector<Pool> pools = {};
  Duration clock_offset = {};  // added to instants that users read
};

struct Policy {
  // On one machine, a gang that requests more than the machine has is scaled down as a whole, each
  // host to 1/n of the machine. GPUs are not divided: each host gets whole GPUs or none.
  bool scale_gangs = false;
};

// -- the plan

struct Start {  // one placement per host of the gang: all or none
  domain::JobNumber job = 0;
  std::vector<Placement> hosts;
  // Tells the user how the hosts differ from the request; "" if they do not.
  std::string note = {};
  domain::JobNumber pool = 0;    // the job whose hosts it takes over; 0: none
  std::string environment = {};  // the compute environment of the chosen alternative
  // 0: as requested; n: its n-th alternative; nullopt: the job has no alternatives.
  std::optional<uint32_t> preference = {};
};

// The cause for which a job waits.
enum class WaitCause {
  other,        // a limit or quota, or something that no machine provides
  capacity,     // capacity that others use or have reserved
  machine,      // more than the empty machines have
  environment,  // more than the maximum of each of its environments
};

struct Wait {  // shown to the user as is
  domain::JobNumber job = 0;
  SharedText reason;  // ends with the latest start, where known
  std::optional<Instant> starts_by = {};
  WaitCause cause = WaitCause::other;
};

// A running job that is preempted for a waiting one. It will wait again.
struct Preemption {
  domain::JobNumber job = 0;
  // "training-job/b of quota share red reclaims what quota share blue has borrowed"
  std::string reason;
};

struct Plan {
  std::vector<Start> starts;
  std::vector<Wait> waits;  // in the order of the queues
  std::vector<Preemption> preemptions;
};

// Limits the search for the layout of one gang: these steps take some milliseconds. A gang whose
// layout is not found by then counts as impossible to place.
inline constexpr size_t kLayoutStepsMax = 20'000;

// Requires: snapshot.waiting is ordered by job, without repeats; names of machines differ; indices
//           are valid.
// Ensures:  no machine, limit or quota is allocated beyond its capacity; each waiting job appears
//           exactly once.
Plan plan(const Snapshot& snapshot, const Policy& policy, Instant now);

// Returns the request of one host of this type. Errors: invalid, for an unknown type.
Result<HostRequest> host_request_for(std::string_view instance_type);
// Returns the request of the group's hosts. Errors: as above.
Result<HostRequest> host_request_of(const domain::InstanceGroup& group);

}  // namespace trainyard::schedule

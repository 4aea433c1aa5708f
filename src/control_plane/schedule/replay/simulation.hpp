// Simulation simulates a cluster over time: jobs arrive, plans are carried out, jobs end and
// release their machines. Preempted jobs end after their notice and wait again; the usage of shares
// decays; amounts that are used for good do not come back.
//
// It passes from event to event (an arrival or an end), and plans once at each. It simulates no
// failing hosts, warm pools, changing machines or ledger; sim/ simulates crashes.
//
// Threads: confined to one. Errors: none. Lifetime: arrivals outlive it.
// Cost: one plan for each event; `tick` bounds them by handling the events of a tick together.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// A job that arrives at the cluster.
struct Arrival {
  WaitingJob job;  // the simulation assigns its number
  // How long it holds its machines; nullopt: it does not end in the simulation.
  std::optional<Duration> lasts = {};
  Instant arrives{};
  bool resumes = false;                       // after a preemption; false: it starts over
  std::vector<domain::JobNumber> after = {};  // it may start once these have ended
};

class Simulation {
 public:
  struct Record {
    const Arrival& work;
    Instant arrives{};
    std::optional<Instant> waits_since = {};  // its arrival, or the end of its dependencies
    std::optional<Instant> started = {};      // its first start
    std::optional<Instant> ended = {};        // its final end
    std::optional<Instant> reserved = {};     // the instant of its first reservation
    Duration done{};  // the finished part of its duration, which is not repeated after preemption
    Duration lost{};  // the part that is repeated
    uint32_t preemptions = 0;
    uint32_t ahead = 0;  // jobs that were waiting when it arrived
  };

  Simulation() = default;
  virtual ~Simulation() = default;
  Simulation(Simulation&&) = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Snapshot snapshot;  // machines, limits and queues are set before the first step
  Policy policy;
  Duration notice{};  // from the preemption of a job to its end
  Duration tick{};    // events are handled at multiples of it; 0: at once

  // Adds a job. Requires: it arrives no earlier than the job that was added last.
  domain::JobNumber add(const Arrival& work, Instant arrives);
  // Adds a job that runs since before the simulation begins. Requires: called before add().
  domain::JobNumber add_running(const Arrival& work, Running running);
  // Sets the instant at which the simulation begins. Requires: no step yet.
  void begin_at(Instant begin) { now_ = begin; }

  // Returns nullopt if no event is left.
  std::optional<Instant> next_event() const;
  // Passes to the next event, plans, and carries the plan out. Requires: next_event().
  void step();

  Instant now() const { return now_; }
  size_t plans() const { return plans_; }
  size_t ended() const { return ended_; }
  const std::deque<Record>& records() const { return records_; }
  const Record& record(domain::JobNumber job) const { return records_[job - 1]; }
  // Returns what the share's jobs have held until now, in all queues.
  double cpu_seconds(const std::string& share) const;
  double cpu_seconds() const;

 protected:
  // Hooks. `planned` is called before the plan is carried out, `left` when a job releases its
  // machines, `admitting` before a job joins its queue.
  virtual void planned(const Plan&) {}
  virtual void left(const Running&) {}
  virtual void admitting(domain::JobNumber, WaitingJob&) const {}

 private:
  struct Durations {  // of the ended runs of a queue
    Duration all{};
    int64_t count = 0;
  };

  void pass_until(Instant next);
  void end_jobs();
  bool end_if_due(const Running& running);
  void admit();
  void arrive(domain::JobNumber job);
  void join_queue(domain::JobNumber job);
  void finish(domain::JobNumber job);
  void carry_out(const Plan& plan);
  void preempt(domain::JobNumber job);
  void set_end(domain::JobNumber job, Instant at);

  std::deque<Record> records_;  // by job
  size_t arrived_ = 0;
  std::map<domain::JobNumber, Instant> ends_;
  std::set<std::pair<Instant, domain::JobNumber>> by_end_;  // the same
  std::vector<domain::JobNumber> joining_;  // preempted jobs that ended, and jobs without
                                            // unfinished dependencies: they join their queues
  // The number of unfinished dependencies of each arrived job, and the jobs that depend on each.
  std::map<domain::JobNumber, size_t> open_dependencies_;
  std::map<domain::JobNumber, std::vector<domain::JobNumber>> dependents_;
  std::map<size_t, Durations> durations_;  // by queue
  std::map<std::string, double> had_;      // vCPU seconds, by share
  Instant now_{};
  size_t plans_ = 0, ended_ = 0;
};

}  // namespace trainyard::schedule

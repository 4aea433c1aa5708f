// Replays the jobs of a past period: as they were recorded, as the scheduler would place them
// again, and with changes (another policy, other machines). Each gives an outcome: waits, use of
// machines over time, preemptions, lost work.
//
// A replayed job holds its machines for as long as it did. So a replay ignores that a job may take
// longer on other machines, that a failed job might not fail again, and that users submit other
// jobs after a shorter wait. Jobs that did not end have an assumed duration (`estimated`) or do not
// end. Launches take no time; warm pools and interruptions by spot are not repeated.
//
// The work is done in steps, so that a caller can spread it over time, show its progress, or drop
// it. Equal histories give equal outcomes.
//
// Threads: confined to one.
// Errors:  those of with_changes(), from make().
// Cost:    one plan for each arrival and each end of each variant, at most kReplayPlansMax
//          together; an outcome that the limit cut off is marked (`complete`).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/replay/replay_changes.hpp"
#include "schedule/replay/simulation.hpp"

namespace trainyard::schedule {

inline constexpr size_t kReplayJobsMax = 200'000;     // some 200 MB
inline constexpr size_t kReplayPlansMax = 2'000'000;  // of all variants together
inline constexpr size_t kReplayBuckets = 120;         // of the use over time
inline constexpr size_t kReplayGroupsMax = 50;        // of each kind, those with most jobs
// With more jobs, events within a second are handled together.
inline constexpr size_t kReplayExactJobsMax = 20'000;

struct RecordedRun {
  Instant began, ended;
};

// A job as the ledger has it.
struct RecordedJob {
  Arrival arrival;
  std::string user = {};  // its share if its queue gets fair share by a change
  std::vector<RecordedRun> runs = {};
  bool ended = false;
  uint32_t preemptions = 0;
  Duration lost{};         // of its runs
  bool estimated = false;  // its duration is assumed
  // False: submitted before the period, and included only since it held machines or waited.
  bool counts = true;
  std::optional<Running> running = {};  // what it held when the period began
};

struct ReplayHistory {
  Instant begin{}, end{};
  // Machines, queues and limits, without jobs.
  Snapshot cluster = {};
  Policy policy = {};
  Duration notice{};
  // The jobs in the order of their arrival; those that run when the period begins come first.
  // `after` has positions in this order, from 1.
  std::vector<RecordedJob> jobs = {};
};

// Waits of jobs: from the arrival (or the end of the last job that it depends on) to the first
// start, or to the end of the period for a job that did not start.
struct WaitSummary {
  size_t jobs = 0, not_started = 0;
  Duration mean{}, median{}, p95{}, longest{};
};

enum class ReplayGrouping { queue, share, instance_type };
inline constexpr EnumTable<ReplayGrouping> kReplayGroupings{
    "grouping",
    {{ReplayGrouping::queue, "queue"},
     {ReplayGrouping::share, "share"},
     {ReplayGrouping::instance_type, "instance-type"}}};

struct WaitGroup {
  ReplayGrouping by = ReplayGrouping::queue;
  std::string key;
  WaitSummary waits;
};

struct ReplayOutcome {
  std::string name;
  bool complete = true;  // false: the limit of plans was reached at `reached`
  Instant reached{};
  WaitSummary waits = {};
  std::vector<WaitGroup> groups = {};
  double cpus = 0, gpus = 0;  // of all machines
  // The mean number in use, in equal parts of the period.
  std::vector<double> cpus_used = {}, gpus_used = {};
  size_t preemptions = 0;
  double lost_cpu_seconds = 0;  // what preempted jobs had to repeat
  Duration makespan{};          // from the begin of the period to the end of the last job
  size_t unfinished = 0;
  // How much starts differ from the recorded ones; only for the outcome "as it is".
  std::optional<Duration> start_error_median = {}, start_error_p95 = {};
  // By job; nullopt for jobs that do not count.
  std::vector<std::optional<Duration>> wait_of = {};
};

inline constexpr std::string_view kReplayRecorded = "recorded";
inline constexpr std::string_view kReplayAsIs = "as it is";

// Returns the percentile by nearest rank; 0 without values. Requires: the values are ordered.
Duration percentile_of(const std::vector<Duration>& ordered, double part);

class Replay {
 public:
  // Errors: invalid, for changes; exhausted, for more jobs than kReplayJobsMax.
  static Result<std::unique_ptr<Replay>> make(ReplayHistory history,
                                              std::vector<ReplayVariant> variants,
                                              size_t plans_max = kReplayPlansMax);
  virtual ~Replay() = default;
  // Works until it is done or `may_continue`, which is called before each plan, returns false.
  // Returns true once it is done.
  virtual bool advance(const std::function<bool()>& may_continue) = 0;
  // Returns the part that is done, 0 to 1.
  virtual double progress() const = 0;
  // Returns the outcomes "recorded", "as it is", and of each variant. Requires: advance() has
  // returned true.
  virtual const std::vector<ReplayOutcome>& outcomes() const = 0;
  virtual const ReplayHistory& history() const = 0;
  // Returns positions in the history: jobs whose wait differs most between "as it is" and a
  // variant, or without variants between "recorded" and "as it is". Jobs without a difference are
  // left out.
  virtual std::vector<size_t> most_affected(size_t jobs_max) const = 0;
};

}  // namespace trainyard::schedule

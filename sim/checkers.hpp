// Checks the invariants of the system while a simulation runs. The checkers compare what the API
// reported to users, what is durable, and what the simulated hosts really did. They do not rely on
// answers of the code under test.
//
//   nothing acknowledged is lost     jobs of users, facts of agents, log lines
//   nothing spooled is lost          the next agent reads every fact that an agent wrote, unchanged
//   nothing runs twice at once       processes of one host of one job
//   no machine is overcommitted      by the ledger, and by the processes that run
//   no limit is exceeded             of environments, users' quotas, and quota shares with their
//                                    borrowing limits
//   machines come and go             idle machines are released, and nothing runs on them
//   preempted jobs come back         as often as the job allows; only jobs of quota shares are
//                                    preempted, and attempts that the launcher has preempted
//   only legal transitions           of jobs, phases, hosts; histories only grow
//   accounting adds up               times of phases and of training; only running time is billed
//   interrupted jobs come back       spot jobs and jobs with retries; no others are interrupted
//   warm pools last                  their machines stay for the keep-alive time, for jobs with the
//                                    same request
//   nothing fails without a cause    every failed job had an injected fault
//   clocks do not matter             no clock that jumps ends a job early, bills it more or
//                                    reverses history
//   every wait has a reason          which the API reports
//   everything ends                  once faults stop
//   the tables match the commands    applied again, the commands yield the same jobs
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "control/testing/test_world.hpp"
#include "domain/job.hpp"
#include "launch/launcher.hpp"
#include "ledger/ledger.hpp"
#include "sim/world.hpp"
#include "wire/messages.hpp"

namespace trainyard::sim {

// The tolerance of checks: facts arrive, and steps are taken, shortly after the times they contain.
inline constexpr Duration kTimeTolerance = 5s;
// The longest time without a plan: a server that was suspended when the faults ended plans again
// within it.
inline constexpr Duration kReasonlessMax = 15min;

// Names a job in messages: "job 7 (mnist)".
std::string title(const domain::Job& job);

class Checkers {
 public:
  Checkers(std::vector<launch::Machine> machines, const World& world, Clock& server_clock)
      : machines_(std::move(machines)), world_(world), server_clock_(server_clock) {}

  // Sets the limits that no job may exceed.
  void set_limits(const std::vector<batch::Resource>& resources,
                  std::vector<domain::InstanceQuota> quotas);

  // -- reported to users
  void acknowledged(const domain::Job& job);
  void stop_acknowledged(const domain::JobKey& key) { stops_.insert(key); }
  void stop_requested_by_user(const domain::JobKey& key) { stop_requests_.insert(key); }
  void described(const domain::Job& job);
  const std::map<domain::JobKey, domain::JobNumber>& jobs() const { return acknowledged_; }

  // -- what is durable
  void committed(const ledger::Batch& batch);
  const domain::Job* durable(domain::JobNumber number) const;

  // -- on the simulated hosts
  void process_started(domain::AttemptId attempt, domain::HostIndex host, const std::string& agent);
  void process_ended(domain::AttemptId attempt, domain::HostIndex host,
                     std::optional<int> code);  // nullopt: the process was removed
  void machine_added(const launch::Machine& machine) { machines_.push_back(machine); }
  void machine_released(const std::string& machine);
  void agent_started(const std::string& machine, const domain::Share& share);
  void agent_removed(const std::string& machine, const domain::Share& share);
  // An agent of the host is started again, from nothing, after an earlier one was removed or lost
  // with its machine.
  void agent_restarted(domain::AttemptId attempt, domain::HostIndex host, const std::string& region,
                       const std::string& stream);
  void attempt_removed(domain::AttemptId attempt);
  // Its launcher could not remove it yet: its agents continue until they learn that it has ended.
  void removal_failed(domain::AttemptId attempt) { not_removed_.insert(attempt); }
  // Its launcher ended its hosts in favour of other work.
  void attempt_preempted(domain::AttemptId attempt) { preempted_attempts_.insert(attempt); }
  void fact_acknowledged(domain::AttemptId attempt, domain::HostIndex host, uint64_t number);
  // An agent has sent the batch; the server has the batches of this and earlier agents of the host
  // up to `acknowledged`.
  void data_sent(domain::AttemptId attempt, domain::HostIndex host, uint64_t number);
  void data_welcomed(domain::AttemptId attempt, domain::HostIndex host, uint64_t acknowledged);
  void dismissed(domain::AttemptId attempt, domain::HostIndex host);
  static void welcomed_with_wrong_token() {
    World::fail("an agent with a wrong token was accepted");
  }
  void line_acknowledged(const std::string& region, const std::string& stream,
                         const std::string& line);
  // From now on the lines of a stream may be repeated or left out; a line of the agent reports
  // this.
  void allow_repeated_lines(const std::string& region, const std::string& stream) {
    repeating_.insert({region, stream});
  }
  // The state track of a spool: the agent passes the next fact to it ..
  void fact_reported(domain::AttemptId attempt, domain::HostIndex host,
                     const wire::StateFact& fact);
  // .. and the spool reports that all facts so far are written.
  void facts_spooled(domain::AttemptId attempt, domain::HostIndex host);
  // An agent, or an operator after a power failure, opens the spool and finds these facts.
  void spool_found(domain::AttemptId attempt, domain::HostIndex host,
                   const std::vector<wire::StateFact>& facts, bool power_lost);
  void point_made(const observe::MetricKey& key) { ++points_[key].made; }
  void point_acknowledged(const observe::MetricKey& key) { ++points_[key].acknowledged; }
  void host_staged(domain::AttemptId attempt, domain::HostIndex host, const std::string& key);
  void merging(domain::AttemptId attempt, const std::vector<std::string>& keys);
  // Records an injected fault that may fail the job.
  void allow_failure(domain::JobNumber job, const std::string& why);

  // -- when the world is calm
  // Checks that each waiting job has a pending reason, except between its plan and its start.
  void check_pending_reasons(control::ControlPlane& control);
  // Describes everything that has not ended yet; "" when nothing is left.
  std::string unfinished(ledger::Ledger& ledger, launch::Launcher& launcher);
  void check_end(ledger::Ledger& ledger, control::test::MemoryLogs& logs,
                 control::test::MemoryMetrics& metrics);

 private:
  void check_moves(const domain::Job& before, const domain::Job& after);
  void check_history(const domain::Job& job);
  void check_machines();
  void check_limits();
  void check_preemptions(const domain::Job& job);
  void check_outcome(const domain::Job& job);
  void check_accounting(const domain::Job& job);
  void check_completed(const domain::Job& job);
  void check_stopped(const domain::Job& job);
  void check_failed(const domain::Job& job);
  void check_array(const domain::Job& array);
  void check_child(const domain::Job& child);
  void check_retries(const domain::Job& job);
  void check_pools(const domain::Job& before, const domain::Job& after);
  void lost(const Json& command);
  void expired(const Json& command);
  void check_times(const domain::Job& job);
  void interrupted(const Json& command);
  void check_replay(ledger::Ledger& ledger);
  void check_logs(control::test::MemoryLogs& logs);
  void check_fact(domain::AttemptId attempt, domain::HostIndex host, uint64_t number,
                  const Json& command);

  std::vector<launch::Machine> machines_;  // including those that were removed
  const World& world_;                     // its time is the true time
  Clock& server_clock_;
  std::map<domain::JobNumber, Duration> created_, first_ran_, finished_;  // in true time
  batch::Catalog catalog_;
  std::vector<domain::InstanceQuota> quotas_;
  std::map<domain::JobKey, domain::JobNumber> acknowledged_;
  std::set<domain::JobKey> stops_, stop_requests_;
  std::map<domain::JobNumber, domain::Job> durable_;
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, uint64_t> facts_;
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, uint64_t> data_sent_;  // last numbers
  std::set<std::pair<domain::AttemptId, domain::HostIndex>> given_up_;
  std::map<domain::AttemptId, Instant> first_running_;
  // whose failure was committed first
  std::map<domain::AttemptId, domain::HostIndex> first_failed_host_;
  std::map<domain::JobNumber, Duration> ran_;  // by attempts that have ended
  // because of a fault of the cluster
  std::map<domain::JobNumber, uint32_t> failed_attempts_;
  // by preemptions that were ordered
  std::map<domain::JobNumber, uint32_t> preemptions_;
  std::set<domain::AttemptId> preempted_attempts_;  // by the launcher
  std::set<domain::AttemptId> not_removed_;         // at least once, when they should have been
  std::map<domain::JobNumber, size_t> seen_transitions_;
  std::map<domain::JobNumber, Duration> no_reason_since_;  // in true time

  struct Process {
    int runs = 0;
    std::string running;  // the agent that runs it
    std::optional<int> code;
  };
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, Process> processes_;
  std::map<std::string, domain::Share> used_;
  std::map<domain::JobNumber, std::string> allowed_failures_;
  using Stream = std::pair<std::string, std::string>;  // region and name
  std::map<Stream, std::set<std::string>> lines_;      // acknowledged
  std::set<Stream> repeating_;
  std::set<std::pair<domain::AttemptId, domain::HostIndex>> restarted_;  // agents that found facts
  struct Spooled {
    std::vector<wire::StateFact> reported;  // by number
    size_t written = 0;
  };
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, Spooled> spools_;
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, std::string> staged_;
  struct Points {
    uint64_t made = 0, acknowledged = 0;
  };
  std::map<observe::MetricKey, Points> points_;
};

}  // namespace trainyard::sim

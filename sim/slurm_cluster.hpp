// SlurmCluster runs the Slurm launcher (launch/slurm) over a simulated Slurm: a controller with a
// queue, nodes, and jobs whose scripts start simulated agents.
//
// Faults: the controller is away for a while, forgets what it accepted shortly before, and loses
// answers to submissions, which it may carry out much later. Jobs wait, are rejected, preempted and
// requeued; nodes fail and come back; steps do not start.
// Ended jobs are listed for MinJobAge; then only the accounting knows them, which some clusters
// lack. The server may die around each submission and cancellation, and between the new name of a
// job and its cancellation.
//
// Checks:
//   - no host of an attempt runs twice at once, and no node has more than it can;
//   - an agent of a job that Slurm has just listed is listed, until its attempt is removed;
//   - a removed attempt has no job that continues;
//   - once all attempts are removed, no job is left.
//
// Jobs that serve several attempts are not simulated: the launcher has no AgentLinks.
//
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/slurm/slurm_launcher.hpp"
#include "sim/checkers.hpp"
#include "sim/cluster.hpp"
#include "sim/network.hpp"
#include "sim/simulated_agent.hpp"

namespace trainyard::sim {

class SlurmCluster final : public Cluster {
 public:
  SlurmCluster(World& world, Network& network, Checkers& checkers, Clock& server_clock,
               std::vector<launch::Machine> machines);

  Result<void> server_starts() override;
  void server_died() override { launcher_.reset(); }
  std::string left() override;

  std::vector<launch::Machine> machines() override { return launcher_->machines(); }
  Result<void> ensure(const launch::Gang& gang) override;
  std::vector<launch::Agent> list() override;
  Result<void> remove(domain::AttemptId attempt) override;

  // A node fails, and comes back later.
  void lose_a_machine() override;
  void preempt_one() override;
  std::optional<domain::AttemptId> any() const override;

 private:
  class Client;
  // A step of a job: one host.
  struct Host {
    domain::HostIndex index = 0;
    std::string machine;
    domain::Share share;
    std::shared_ptr<SimulatedAgent> agent;  // nullptr: the step did not start
    bool over = false;
  };
  struct SlurmJob {
    launch::SlurmJob shown;
    launch::SlurmJobRequest request;
    domain::AttemptId attempt;
    std::vector<Host> hosts;  // from its start
    std::string ended_hosts;  // with exit codes, as in the comment
    std::string end_state;    // when its last host ends; "": by the exit codes
    Duration submitted{};
    std::optional<Duration> over;  // the time of its end
    bool runs() const { return !over && !hosts.empty(); }
  };

  // -- the controller
  bool is_away() const { return !world_.calm && world_.elapsed() < away_until_; }
  Result<void> answer();
  std::vector<launch::SlurmJob> answer_jobs();
  std::vector<launch::SlurmNode> answer_nodes() const;
  std::vector<launch::SlurmJob> answer_ended(const std::vector<uint64_t>& ids) const;
  Result<uint64_t> submit(const launch::SlurmJobRequest& request);
  Result<void> cancel(uint64_t id, const std::string& name);
  uint64_t accept(const launch::SlurmJobRequest& request);
  void consider(uint64_t id);
  // Returns Slurm's reason why the job cannot start now; "": it can.
  std::string why_pending(const SlurmJob& job) const;
  void start(SlurmJob& job);
  void start_host(SlurmJob& job, const std::string& order, const std::shared_ptr<Gang>& in_common);
  void watch(uint64_t id);
  void end_host(SlurmJob& job, Host& host, int code);
  void show_ended(uint64_t id);
  // Kills what runs, and ends the job or queues it again.
  void end(SlurmJob& job, const std::string& state);
  void requeue(SlurmJob& job);
  void go_away_sometimes();
  void forget_recent(Duration since);

  SimulatedAgent* some_agent() override;

  World& world_;
  Network& network_;
  Checkers& checkers_;
  Clock& server_clock_;
  const std::vector<launch::Machine> nodes_;
  launch::SlurmSettings settings_;
  std::unique_ptr<launch::Launcher> launcher_;  // the current server owns it
  std::map<domain::AttemptId, launch::Gang> gangs_;

  std::map<uint64_t, SlurmJob> jobs_;  // all that were accepted and not forgotten, by id
  uint64_t last_id_ = 0;
  std::vector<launch::SlurmJobRequest> delayed_;  // sent, and carried out after the next answer
  std::map<std::string, Duration> down_until_;    // by node
  Duration away_until_{};
  const bool has_accounting_;
  bool answered_ = false;  // since the launcher was called
};

}  // namespace trainyard::sim

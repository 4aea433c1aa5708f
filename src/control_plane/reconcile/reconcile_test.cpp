#include "reconcile/reconcile.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"
#include "contract/plain_container.hpp"
#include "reconcile/guarded_text.hpp"

namespace trainyard::reconcile {
namespace {

using domain::AttemptState;
using domain::Fault;
using domain::HostState;
using domain::JobState;

const Instant kReconcileNow = from_milliseconds(1'000'000'000);

// A job of two hosts on one machine, placed a minute ago under token "t".
domain::Job a_job(HostState first, HostState second) {
  domain::Job job;
  job.number = 1;
  job.key = {"us-east-1", "a"};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
  job.state = JobState::active;
  domain::Attempt attempt;
  attempt.token = "t";
  attempt.started = kReconcileNow - 1min;
  for (const HostState state : {first, second}) {
    domain::Host host;
    host.state = state;
    host.machine = "box-1";
    host.share = {2, int64_t{8} << 30, 0};
    host.facts_applied = state == HostState::placed ? 0 : 1;
    host.state_since = kReconcileNow - 30s;
    attempt.hosts.push_back(host);
  }
  job.attempts = {attempt};
  return job;
}

launch::Agent agent(domain::HostIndex host, bool alive = true, const std::string& token = "t") {
  return {{1, 1}, token, host, alive};
}

// Formats a decision, for comparison in tables.
std::string text_of(const Decision& decision) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : "; ") + word; };
  for (const auto id : decision.ensure) add("ensure " + id.text());
  for (const auto id : decision.remove) add("remove " + id.text());
  for (const Command& command : decision.commands) {
    if (const auto* lose = std::get_if<Lose>(&command)) {
      std::string hosts;
      for (const auto host : lose->hosts) hosts += " " + std::to_string(host);
      add("lose" + hosts + " (" + std::string(to_string(lose->fault)) + ": " + lose->reason + ")");
    } else if (const auto* place = std::get_if<StartAttempt>(&command)) {
      add("place " + std::to_string(place->job) + " on " + place->hosts[0].machine);
    } else {
      add(std::string(kind_of(command)));
    }
  }
  return text;
}

const Spot kSpot;  // interrupts no host

struct Case {
  domain::Job job = a_job(HostState::placed, HostState::placed);
  std::vector<launch::Agent> agents;
  std::optional<Error> launch_failure;

  std::string decided() const {
    Snapshot snapshot;
    snapshot.jobs = {std::make_shared<const domain::Job>(job)};
    snapshot.agents = agents;
    snapshot.machines = {{"box-1", 8, int64_t{32} << 30, 0}};
    if (launch_failure) snapshot.launch_failures.emplace(domain::AttemptId{1, 1}, *launch_failure);
    const std::string one = text_of(decide(snapshot, {}, {}, kSpot, kReconcileNow));
    EXPECT_EQ(text_of(decide(snapshot, {}, {}, kSpot, kReconcileNow)), one)
        << "equal arguments give equal decisions";
    return one;
  }
};

TEST(Decide, StartsPlacedAttempts) { EXPECT_EQ(Case{}.decided(), "ensure j1a1"); }

TEST(Decide, LeavesRunningAttemptsUnchanged) {
  EXPECT_EQ(
      (Case{a_job(HostState::running, HostState::placed), {agent(0), agent(1)}, {}}.decided()), "");
}

TEST(Decide, CompletesAPartlyStartedGang) {
  EXPECT_EQ((Case{a_job(HostState::running, HostState::placed), {agent(0)}, {}}.decided()),
            "ensure j1a1");
}

TEST(Decide, LosesHostsWhoseAgentsHaveExited) {
  const std::string gone = "(lost: lost the host's agent on machine box-1)";
  EXPECT_EQ((Case{a_job(HostState::running, HostState::placed), {agent(0), agent(1, false)}, {}}
                 .decided()),
            "lose 1 " + gone);
  EXPECT_EQ((Case{a_job(HostState::running, HostState::running), {}, {}}.decided()),
            "lose 0 1 " + gone)
      << "the machine was rebooted";
  EXPECT_EQ((Case{a_job(HostState::finished, HostState::running), {agent(0, false), agent(1)}, {}}
                 .decided()),
            "")
      << "it had finished";
}

TEST(Decide, DoesNotStartAGangAgainOfWhichAHostHasReported) {
  const std::string gone = "(lost: lost the host's agent on machine box-1)";
  EXPECT_EQ((Case{a_job(HostState::placed, HostState::finished), {}, {}}.decided()),
            "lose 0 " + gone)
      << "the second would run twice";
  EXPECT_EQ((Case{a_job(HostState::placed, HostState::finished), {agent(1, false)}, {}}.decided()),
            "ensure j1a1")
      << "the launcher knows what it has started";
}

TEST(Decide, ReportsTheLaunchersNoteOfADeadAgent) {
  Case lost{a_job(HostState::running, HostState::running), {agent(0), agent(1, false)}, {}};
  lost.agents[1].note = "Slurm job 7 is NODE_FAIL";
  EXPECT_EQ(lost.decided(),
            "lose 1 (lost: lost the host's agent on machine box-1: Slurm job 7 is NODE_FAIL)");
}

TEST(Decide, InterruptsAJobOfWhichALauncherPreemptedAHost) {
  Case taken{a_job(HostState::running, HostState::running), {agent(0), agent(1, false)}, {}};
  taken.agents[1].preempted = true;
  taken.agents[1].note = "Slurm job 7 is PREEMPTED";
  EXPECT_EQ(taken.decided(),
            "interrupt; lose 1 (lost: lost the host's agent on machine box-1: Slurm job 7 is "
            "PREEMPTED)");
}

TEST(Decide, InterruptsAJobWhileALauncherPreemptsAHost) {
  Case running{a_job(HostState::running, HostState::running), {agent(0), agent(1)}, {}};
  running.agents[1].preempted = true;
  running.agents[1].note = "Slurm job 7 is RUNNING and is being preempted";
  EXPECT_EQ(running.decided(), "interrupt");
  running.job.attempts[0].interrupted = kReconcileNow;
  running.job.attempts[0].interruption = "algo-2: preempted";
  EXPECT_EQ(running.decided(), "") << "once";
  Case uploading{a_job(HostState::uploading, HostState::running), {agent(0), agent(1)}, {}};
  uploading.agents[0].preempted = true;
  EXPECT_EQ(uploading.decided(), "") << "its upload may end in time";
}

TEST(Decide, GivesAPreemptedJobAnotherAttempt) {
  domain::Job job = a_job(HostState::running, HostState::running);
  Case taken{job, {agent(0, false), agent(1, false)}, {}};
  taken.agents[0].note = "Slurm job 7 is PREEMPTED";
  for (auto& each : taken.agents) each.preempted = true;
  Snapshot snapshot;
  snapshot.jobs = {std::make_shared<const domain::Job>(job)};
  snapshot.agents = taken.agents;
  for (const Command& command : decide(snapshot, {}, {}, kSpot, kReconcileNow).commands) {
    const auto changed = apply({&job}, command, kReconcileNow);
    ASSERT_TRUE(changed && changed->job) << kind_of(command);
    job = *changed->job;
  }
  EXPECT_EQ(job.state, JobState::waiting);
  EXPECT_TRUE(job.attempts[0].preempted);
  EXPECT_EQ(job.transitions.back().message,
            "The training job was interrupted and starts again: algo-1: preempted on machine "
            "box-1: Slurm job 7 is PREEMPTED (a preemption does not count as a retry)");
}

// The agent has received SIGTERM. Its launcher tells later whether the job was preempted.
TEST(Decide, DoesNotBlameAJobForAProcessThatItsAgentStopped) {
  for (const bool preempted : {false, true}) {
    domain::Job job = a_job(HostState::running, HostState::running);
    Fact fact{{1, 1}, 0, {}};
    fact.fact.number = 2;
    fact.fact.at = kReconcileNow;
    fact.fact.state = HostState::draining;
    fact.fact.exit_code = 143;
    fact.fact.stopped = domain::StopCause::interrupted;
    auto changed = apply({&job}, fact, kReconcileNow);
    ASSERT_TRUE(changed && changed->job);
    job = *changed->job;
    EXPECT_FALSE(job.attempt()->first_failed);
    Case ended{job, {agent(0, false), agent(1)}, {}};
    ended.agents[0].preempted = preempted;
    ended.agents[0].note = preempted ? "Slurm job 7 is PREEMPTED" : "Slurm job 7 is CANCELLED";
    EXPECT_EQ(ended.decided(), (preempted ? "interrupt; " : "") +
                                   ("lose 0 (lost: lost the host's agent on machine box-1: " +
                                    ended.agents[0].note + ")"));
  }
}

TEST(Decide, WaitsForAttemptsPendingBelowTheLauncher) {
  Case pending{a_job(HostState::placed, HostState::placed), {agent(0), agent(1)}, {}};
  for (auto& each : pending.agents) each.note = "Slurm job 7 is PENDING (Resources)";
  Snapshot snapshot;
  snapshot.jobs = {std::make_shared<const domain::Job>(pending.job)};
  snapshot.agents = pending.agents;
  const Decision decision = decide(snapshot, {}, {}, kSpot, kReconcileNow);
  ASSERT_EQ(decision.waits.size(), 1u);
  EXPECT_EQ(decision.waits[0].reason.str(), "Slurm job 7 is PENDING (Resources)");
  EXPECT_TRUE(decision.ensure.empty() && decision.commands.empty());
  pending.job.state = JobState::stopping;
  pending.job.stop_requested = kReconcileNow;
  EXPECT_EQ(pending.decided(), "lose 0 1 (internal: stopped before it was started)");
}

// The agent may run an attempt of an earlier server, but no later one.
TEST(Decide, StartsALaterAttemptNextToAnAgentThatHasNotReported) {
  launch::Agent unknown{{}, "", 0, true};
  unknown.unknown_on = "box-1";
  const Case placed{a_job(HostState::placed, HostState::placed), {unknown}, {}};
  Snapshot snapshot;
  snapshot.jobs = {std::make_shared<const domain::Job>(placed.job)};
  snapshot.agents = placed.agents;
  const Instant started = placed.job.attempt()->started;
  snapshot.server_began = started;
  EXPECT_EQ(text_of(decide(snapshot, {}, {}, kSpot, kReconcileNow)), "");
  snapshot.server_began = started - 1ms;
  EXPECT_EQ(text_of(decide(snapshot, {}, {}, kSpot, kReconcileNow)), "ensure j1a1");
}

// A running agent has log lines to send; one that was not started would stay pending.
TEST(Decide, RemovesEndedAttemptsPendingBelowTheLauncherAtOnce) {
  Case ended{a_job(HostState::lost, HostState::lost), {agent(0), agent(1)}, {}};
  domain::Attempt& attempt = ended.job.attempts.back();
  attempt.state = AttemptState::ended;
  attempt.ended = kReconcileNow;
  for (domain::Host& host : attempt.hosts) host.facts_applied = 0;
  ended.job.state = JobState::stopped;
  EXPECT_EQ(ended.decided(), "");
  ended.agents[0].note = "Slurm job 7 is PENDING (Resources)";
  EXPECT_EQ(ended.decided(), "") << "its other agent runs";
  ended.agents[1].note = ended.agents[0].note;
  EXPECT_EQ(ended.decided(), "remove j1a1");
  attempt.hosts[0].facts_applied = 1;
  EXPECT_EQ(ended.decided(), "") << "its agent has run, although the launcher does not know it";
}

TEST(Decide, GivesUpAttemptsThatTheLauncherCannotStart) {
  Case now;
  now.launch_failure = unavailable("busy");
  EXPECT_EQ(now.decided(), "ensure j1a1");
  now.job.attempts[0].started = kReconcileNow - 5min;
  EXPECT_EQ(now.decided(), "lose 0 1 (internal: the hosts could not be started: busy)");
  Case never;
  never.launch_failure = denied("no namespaces");
  EXPECT_EQ(never.decided(), "lose 0 1 (internal: the hosts could not be started: no namespaces)");
  never.launch_failure = not_found("no image debian");
  EXPECT_EQ(never.decided(), "lose 0 1 (client: the hosts could not be started: no image debian)");
  never.launch_failure =
      invalid("CannotPullContainerError: no image", contract::StartFault::cannot_pull);
  EXPECT_EQ(never.decided(), "lose 0 1 (client: CannotPullContainerError: no image)")
      << "AWS's text is not changed";
  Case first;
  first.job.attempts[0].started = kReconcileNow - 5min;
  EXPECT_EQ(first.decided(), "ensure j1a1") << "the server was down, so it was not tried yet";
}

TEST(Decide, DoesNotStartAStoppingJob) {
  Case stopped;
  stopped.job.state = JobState::stopping;
  EXPECT_EQ(stopped.decided(), "lose 0 1 (internal: stopped before it was started)");
}

TEST(Decide, RemovesEndedAttempts) {
  Case over;
  over.job = a_job(HostState::finished, HostState::finished);
  over.job.state = JobState::completed;
  over.job.attempts[0].state = AttemptState::ended;
  over.job.attempts[0].ended = kReconcileNow - 10s;
  EXPECT_EQ(over.decided(), "") << "it has no agents";
  over.agents = {agent(0, false), agent(1)};
  EXPECT_EQ(over.decided(), "") << "an agent may still send its last lines";
  over.agents = {agent(0, false), agent(1, false)};
  EXPECT_EQ(over.decided(), "remove j1a1");
  over.agents = {agent(1)};
  over.job.attempts[0].ended = kReconcileNow - 30s;
  EXPECT_EQ(over.decided(), "remove j1a1");
}

TEST(Decide, RemovesOrphanAgents) {
  Case strange;
  strange.agents = {agent(0, true, "old")};
  EXPECT_EQ(strange.decided(), "remove j1a1") << "an agent with another token";
  strange.agents = {agent(0), agent(1), {{7, 1}, "x", 0, true}, {{1, 2}, "x", 0, true}};
  EXPECT_EQ(strange.decided(), "remove j7a1; remove j1a2");
}

TEST(Decide, EndsHostsThatDoNotStop) {
  Case stuck;
  stuck.job = a_job(HostState::running, HostState::finished);
  stuck.agents = {agent(0), agent(1)};
  stuck.job.state = JobState::stopping;
  stuck.job.stop_requested = kReconcileNow - 120s - 60min + 1ms;
  EXPECT_EQ(stuck.decided(), "");
  stuck.job.stop_requested = kReconcileNow - 120s - 60min;
  EXPECT_EQ(stuck.decided(),
            "lose 0 (internal: the host did not end in the time that it was given to stop)");
}

TEST(Decide, ExpiresByTrainingTime) {
  Case late;
  late.job = a_job(HostState::running, HostState::running);
  late.agents = {agent(0), agent(1)};
  late.job.spec.max_runtime_seconds = 60;
  EXPECT_EQ(late.decided(), "") << "it does not train yet";
  late.job.attempts[0].training_started = kReconcileNow - 60s;
  EXPECT_EQ(late.decided(), "expire");
  late.job.stop_cause = domain::StopCause::host_failed;
  EXPECT_EQ(late.decided(), "") << "it is ending already";
}

TEST(Decide, PlacesWaitingJobsInFreeCapacity) {
  domain::Job waiting = a_job(HostState::placed, HostState::placed);
  waiting.number = 2;
  waiting.key.name = "b";
  waiting.spec.groups[0].count = 3;
  waiting.state = JobState::waiting;
  waiting.attempts.clear();
  Snapshot snapshot;
  snapshot.jobs = {
      std::make_shared<const domain::Job>(a_job(HostState::running, HostState::running)),
      std::make_shared<const domain::Job>(waiting)};
  snapshot.agents = {agent(0), agent(1)};
  snapshot.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
  Decision decision = decide(snapshot, {}, {}, kSpot, kReconcileNow);
  EXPECT_EQ(text_of(decision), "");
  ASSERT_EQ(decision.waits.size(), 1u);
  EXPECT_EQ(reveal_to_all(decision.waits[0].reason.str()),
            "waits for 2 more vCPU on machine box-1 (needs 6, 4 free): held by training-job/a (4); "
            "starts by 1970-01-13 14:52:40 UTC at the latest");
  snapshot.machines[0].cpus = 10;
  EXPECT_EQ(text_of(decide(snapshot, {}, {}, kSpot, kReconcileNow)), "place 2 on box-1");
}

// Two jobs of a queue that allows host reuse: the first has ended, the second was placed.
TEST(HostReuse, StartsTheNextJobOnAnIdleHost) {
  auto catalog = std::make_shared<batch::Catalog>();
  batch::JobQueue queue;
  queue.key = {"us-east-1", "quick"};
  catalog->queues[queue.key] = queue;
  Snapshot snapshot;
  snapshot.catalog = catalog;
  snapshot.machines = {{"box-1", 8, int64_t{32} << 30}};
  for (uint64_t number = 1; number <= 3; number++) {
    auto job = a_job(number == 1 ? HostState::finished : HostState::placed, HostState::placed);
    job.number = number;
    job.key.name = std::to_string(number);
    job.spec.groups[0].count = 1;
    job.spec.queue.emplace();
    job.spec.contract = domain::Contract::plain;
    job.spec.queue->name = "quick";
    auto& attempt = job.attempts[0];
    attempt.hosts.resize(1);
    attempt.token = "t" + std::to_string(number);
    if (number == 1) {
      job.state = JobState::completed;
      attempt.state = AttemptState::ended;
      attempt.ended = kReconcileNow - 1ms;
    }
    snapshot.jobs.push_back(std::make_shared<domain::Job>(job));
  }
  snapshot.agents = {{{1, 1}, "t1", 0, true}};
  const auto decided = [&] { return decide(snapshot, {}, {}, {}, kReconcileNow); };
  EXPECT_TRUE(decided().after.empty()) << "the queue does not allow reuse";
  snapshot.reuse_queues = {queue.key};
  const auto decision = decided();
  EXPECT_EQ(decision.ensure.size(), 2u);
  EXPECT_TRUE(decision.remove.empty());
  ASSERT_EQ(decision.after.size(), 1u) << "the host gets one job";
  EXPECT_EQ(decision.after.at({2, 1}), (domain::AttemptId{1, 1}));
  snapshot.agents[0].alive = false;
  EXPECT_TRUE(decided().after.empty());
  EXPECT_EQ(decided().remove.size(), 1u);
}

}  // namespace
}  // namespace trainyard::reconcile

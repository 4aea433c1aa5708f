#include "launch/slurm/slurm_launcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/test_clock.hpp"
#include "launch/testing/memory_slurm.hpp"

namespace trainyard::launch {
namespace {

SlurmNode usable_node(const std::string& name) {
  SlurmNode node;
  node.name = name;
  node.address = name;
  node.states = {"IDLE"};
  node.partitions = {"train"};
  node.cpus = 16;
  node.memory_mib = 1000;
  node.gpus = 4;
  return node;
}

SlurmSettings launcher_settings() {
  SlurmSettings settings;
  settings.own_thread = false;
  settings.jobs.mark = "3fa91c";
  settings.jobs.program_directory = "/opt/trainyard";
  settings.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
  settings.seal = [](const std::string& token, const std::string&) { return token; };
  settings.unseal = [](const std::string& sealed, const std::string&) -> Result<std::string> {
    return sealed;
  };
  return settings;
}

Gang numbered_gang(uint64_t job, std::vector<std::string> machines) {
  Gang gang;
  gang.attempt = {job, 1};
  gang.token = "token" + std::to_string(job);
  for (auto& machine : machines) gang.members.push_back({{machine, {2, 100 << 20, 1}}, "order"});
  return gang;
}

class SlurmLauncherTest : public testing::Test {
 protected:
  SlurmLauncherTest() { slurm_.nodes = {usable_node("n1"), usable_node("n2")}; }
  std::unique_ptr<Launcher> server(const SlurmSettings& with = launcher_settings()) {
    auto made = make_slurm(with, {slurm_.client(), slurm_.client(), slurm_.client()}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  TestClock clock_;
  MemorySlurm slurm_;
};

TEST_F(SlurmLauncherTest, ReportsWithSlurmsReasonsWhyAgentsEnded) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1", "n2"})));
  slurm_.end_host({1, 1}, 1, 137);
  auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 2u);
  EXPECT_TRUE(agents[0].alive);
  EXPECT_FALSE(agents[1].alive);
  EXPECT_EQ(agents[1].note, "n1: Killed");
  slurm_.nodes[1].states = {"DOWN"};
  slurm_.nodes[1].reason = "Not responding [slurm@2026-11-24]";
  slurm_.all.at(1).shown.state = "NODE_FAIL";
  slurm_.all.at(1).shown.reason = "NodeDown";
  agents = launcher->list();
  EXPECT_FALSE(agents[0].alive);
  EXPECT_EQ(agents[0].note,
            "Slurm job 1 is NODE_FAIL (NodeDown); node n2: Not responding [slurm@2026-11-24]");
}

TEST_F(SlurmLauncherTest, TellsPreemptedAgentsFromThoseThatFailed) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_FALSE(launcher->list().at(0).preempted);
  slurm_.all.at(1).shown.preempted = true;
  const Agent stopping = launcher->list().at(0);
  EXPECT_TRUE(stopping.alive && stopping.preempted);
  EXPECT_EQ(stopping.note, "Slurm job 1 is RUNNING and is being preempted");
  slurm_.all.at(1).shown.state = "COMPLETED";
  const Agent stopped = launcher->list().at(0);
  EXPECT_TRUE(!stopped.alive && stopped.preempted) << "it ended within the grace period";
  EXPECT_EQ(stopped.note, "Slurm job 1 is COMPLETED after it was preempted");
  slurm_.all.at(1).shown.preempted = false;
  slurm_.all.at(1).shown.state = "PREEMPTED";
  const Agent preempted = launcher->list().at(0);
  EXPECT_FALSE(preempted.alive);
  EXPECT_TRUE(preempted.preempted);
  EXPECT_EQ(preempted.note, "Slurm job 1 is PREEMPTED");
  slurm_.all.at(1).shown.state = "FAILED";
  EXPECT_FALSE(launcher->list().at(0).preempted);
}

TEST_F(SlurmLauncherTest, WaitsSomeSecondsUntilSlurmTellsHowAJobHasEnded) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  slurm_.all.at(1).shown.state = "COMPLETING";
  EXPECT_TRUE(launcher->list().at(0).alive);
  clock_.advance(29s);
  EXPECT_TRUE(launcher->list().at(0).alive);
  clock_.advance(1s);
  EXPECT_FALSE(launcher->list().at(0).alive) << "a node that does not respond holds no job back";
  EXPECT_EQ(launcher->list().at(0).note, "Slurm job 1 is COMPLETING");
  slurm_.all.at(1).shown.state = "RUNNING";
  (void)launcher->list();
  slurm_.all.at(1).shown.state = "COMPLETING";
  EXPECT_TRUE(launcher->list().at(0).alive) << "the time counts from this end";
}

// The REST API cannot switch requeueing off.
TEST_F(SlurmLauncherTest, CountsARequeuedJobAsDeadAndCancelsIt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  slurm_.nodes[0].states = {"DOWN"};
  slurm_.nodes[0].reason = "Not responding";
  SlurmJob& job = slurm_.all.at(1).shown;
  job.state = "PENDING";
  job.reason = "BeginTime";
  job.requeued = true;
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_FALSE(agents[0].alive || agents[0].preempted);
  EXPECT_EQ(agents[0].note,
            "Slurm job 1 is PENDING (BeginTime) after it was requeued; node n1: Not responding");
  slurm_.nodes[0].states = {"IDLE"};
  EXPECT_TRUE(launcher->list().at(0).preempted) << "not its node was the reason";
  ASSERT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 0u);
}

TEST_F(SlurmLauncherTest, CountsAPendingJobAsAlive) {
  slurm_.state_of_new_jobs = "PENDING";
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  slurm_.all.at(1).shown.reason = "Resources";
  slurm_.all.at(1).shown.expected_start = "2026-11-24T12:07:30";
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_TRUE(agents[0].alive);
  EXPECT_EQ(agents[0].note,
            "Slurm job 1 is PENDING (Resources), expected to start at 2026-11-24T12:07:30");
}

TEST_F(SlurmLauncherTest, CountsAJobAsLiveUntilItsStateSaysThatItHasEnded) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  const auto alive_in = [&](const std::string& state) {
    slurm_.all.at(1).shown.state = state;
    return launcher->list().at(0).alive;
  };
  for (const char* state : {"CONFIGURING", "SUSPENDED", "RESV_DEL_HOLD", "A_STATE_OF_LATER"})
    EXPECT_TRUE(alive_in(state)) << state;
  for (const char* state :
       {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL",
        "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"})
    EXPECT_FALSE(alive_in(state)) << state;
}

TEST_F(SlurmLauncherTest, KeepsItsLastAnswerWhileSlurmIsAway) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  ASSERT_EQ(launcher->list().size(), 1u);
  slurm_.away = "Unable to contact slurm controller";
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_TRUE(launcher->list()[0].alive);
  EXPECT_EQ(launcher->machines().size(), 2u);
  EXPECT_EQ(launcher->remove({1, 1}).error().kind, Kind::unavailable);
  slurm_.away = "";
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_TRUE(launcher->list().empty());
}

TEST_F(SlurmLauncherTest, IsNotMadeWithoutSlurmOrItsPartition) {
  slurm_.away = "Unable to contact slurm controller";
  const auto make = [this](const SlurmSettings& settings) {
    return make_slurm(settings, {slurm_.client(), slurm_.client(), slurm_.client()}, clock_);
  };
  EXPECT_EQ(make(launcher_settings()).error().kind, Kind::unavailable);
  slurm_.away = "";
  SlurmSettings wrong = launcher_settings();
  wrong.jobs.placement.partition = "no-such";
  const auto made = make(wrong);
  EXPECT_EQ(made.error().kind, Kind::invalid);
  EXPECT_NE(made.error().message.find("'no-such'"), std::string::npos) << made.error().message;
}

TEST_F(SlurmLauncherTest, SaysThatAgentsAreUnknownWhenSlurmIsAwayForLong) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  ASSERT_EQ(launcher->list().at(0).note, "");
  slurm_.away = "Unable to contact slurm controller";
  clock_.advance(59s);
  EXPECT_EQ(launcher->list().at(0).note, "");
  clock_.advance(24h);
  const Agent agent = launcher->list().at(0);
  EXPECT_TRUE(agent.alive);
  EXPECT_EQ(agent.note,
            "Slurm job 1 was RUNNING when Slurm answered last, at "
            "2025-11-20T09:45:00Z: Unable to contact slurm controller");
  slurm_.away = "";
  EXPECT_EQ(launcher->list().at(0).note, "");
}

TEST_F(SlurmLauncherTest, KeepsAGangUntilSlurmAnswers) {
  const auto launcher = server();
  slurm_.away = "Unable to contact slurm controller";
  for (const uint64_t job : {1, 2}) ASSERT_TRUE(launcher->ensure(numbered_gang(job, {"n1", "n2"})));
  auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 4u);
  EXPECT_TRUE(agents[1].alive);
  EXPECT_EQ(agents[1].token, "token1");
  EXPECT_EQ(agents[1].note, "waiting until Slurm answers: Unable to contact slurm controller");
  EXPECT_TRUE(launcher->remove({2, 1})) << "the job is unknown to Slurm";
  EXPECT_EQ(launcher->list().size(), 2u);
  slurm_.away = "";
  EXPECT_TRUE(launcher->list().empty()) << "it is missing, so that it is ensured again";
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1", "n2"})));
  EXPECT_EQ(launcher->list().size(), 2u);
  EXPECT_EQ(slurm_.running(), 1u);
}

// The answer of sbatch may be lost after the job was accepted.
TEST_F(SlurmLauncherTest, FindsTheJobOfASubmissionWithoutAnAnswer) {
  const auto launcher = server();
  slurm_.after_submit = [&](const SlurmJobRequest&) -> Result<void> {
    slurm_.away = "sbatch did not end within 30 s";
    return unavailable(slurm_.away);
  };
  EXPECT_EQ(launcher->ensure(numbered_gang(1, {"n1"})).error().kind, Kind::unavailable);
  ASSERT_EQ(launcher->list().size(), 1u) << "its agents may report already";
  EXPECT_TRUE(launcher->list().at(0).alive);
  EXPECT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_EQ(launcher->list().at(0).note,
            "waiting until Slurm answers: sbatch did not end within 30 s");
  EXPECT_EQ(launcher->remove({1, 1}).error().kind, Kind::unavailable);
  slurm_.away = "";
  ASSERT_EQ(launcher->list().size(), 1u);
  EXPECT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_EQ(slurm_.all.size(), 1u) << "one submission";
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 0u);
}

// A slurmctld that hung answers a query before it carries out the submission that it had received.
TEST_F(SlurmLauncherTest, BelievesTheSecondAnswerWithoutTheJobOfASubmission) {
  const auto launcher = server();
  std::optional<SlurmJobRequest> received;
  slurm_.after_submit = [&](const SlurmJobRequest& request) -> Result<void> {
    received = request;
    return unavailable("sbatch did not end within 30 s");
  };
  const Gang gang = numbered_gang(1, {"n1"});
  EXPECT_EQ(launcher->ensure(gang).error().kind, Kind::unavailable);
  ASSERT_TRUE(received);
  slurm_.all.clear();
  slurm_.after_submit = nullptr;
  EXPECT_TRUE(launcher->ensure(gang)) << "the first answer without it";
  ASSERT_TRUE(slurm_.client()->submit(*received));
  ASSERT_EQ(launcher->list().size(), 1u);
  EXPECT_TRUE(launcher->ensure(gang));
  EXPECT_EQ(slurm_.running(), 1u) << "no second submission";
}

TEST_F(SlurmLauncherTest, ResubmitsAJobThatSlurmDoesNotHave) {
  const auto launcher = server();
  slurm_.after_submit = [&](const SlurmJobRequest&) -> Result<void> {
    return unavailable("sbatch did not end within 30 s");
  };
  const Gang gang = numbered_gang(1, {"n1"});
  EXPECT_EQ(launcher->ensure(gang).error().kind, Kind::unavailable);
  slurm_.after_submit = nullptr;
  slurm_.all.clear();
  EXPECT_TRUE(launcher->ensure(gang)) << "the first answer without it";
  EXPECT_EQ(slurm_.running(), 0u);
  EXPECT_TRUE(launcher->list().empty()) << "the second one";
  EXPECT_TRUE(launcher->ensure(gang));
  EXPECT_EQ(slurm_.running(), 1u);
}

TEST_F(SlurmLauncherTest, CancelsASecondJobOfAnAttempt) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  ASSERT_TRUE(slurm_.client()->submit(slurm_.all.at(1).request));
  EXPECT_EQ(slurm_.running(), 2u);
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(slurm_.running(), 1u);
  EXPECT_EQ(slurm_.all.at(1).shown.state, "RUNNING");
  launcher = server();
  EXPECT_EQ(launcher->list().size(), 1u);
}

TEST_F(SlurmLauncherTest, CancelsARemovedJobUntilItHasEnded) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  slurm_.after_renaming = [](uint64_t) -> Result<void> {
    return unavailable("scancel did not end within 30 s");
  };
  EXPECT_EQ(launcher->remove({1, 1}).error().kind, Kind::unavailable);
  ASSERT_EQ(slurm_.all.at(1).shown.name, "removed-trainyard-3fa91c-j1a1");
  EXPECT_TRUE(launcher->list().empty());
  EXPECT_EQ(slurm_.running(), 1u) << "cancelling still fails";
  slurm_.after_renaming = nullptr;
  EXPECT_TRUE(launcher->list().empty());
  EXPECT_EQ(slurm_.running(), 0u);
}

// A server was killed between the two steps.
TEST_F(SlurmLauncherTest, DoesNotStartAnAttemptWhileItsRemovedJobRuns) {
  ASSERT_TRUE(server()->ensure(numbered_gang(1, {"n1"})));
  slurm_.all.at(1).shown.name = "removed-trainyard-3fa91c-j1a1";
  const auto launcher = server();
  EXPECT_EQ(launcher->ensure(numbered_gang(1, {"n1"})).error().kind, Kind::unavailable);
  EXPECT_EQ(slurm_.all.size(), 1u);
  EXPECT_EQ(slurm_.running(), 0u);
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_EQ(slurm_.running(), 1u);
}

TEST_F(SlurmLauncherTest, LetsANewJobWaitForTheEndOfARemovedOne) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  ASSERT_TRUE(launcher->remove({1, 1}));
  slurm_.all.at(1).shown.state = "COMPLETING";
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_EQ(dependency_of(slurm_.all.at(2).request), "singleton,afterany:1");
}

TEST_F(SlurmLauncherTest, CancelsAndSubmitsNothingUnlessItsServerMay) {
  for (uint64_t job = 1; job <= 2; ++job) ASSERT_TRUE(server()->ensure(numbered_gang(job, {"n1"})));
  ASSERT_TRUE(slurm_.client()->submit(slurm_.all.at(1).request));
  slurm_.all.at(2).shown.name = "removed-trainyard-3fa91c-j2a1";
  SlurmSettings standby = launcher_settings();
  standby.why_not = [] { return "another server writes the ledger"; };
  const size_t running = slurm_.running();
  const auto launcher = server(standby);
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(launcher->remove({1, 1}).error().kind, Kind::unavailable);
  EXPECT_EQ(launcher->ensure(numbered_gang(3, {"n1"})).error().kind, Kind::unavailable);
  EXPECT_EQ(slurm_.running(), running);
  EXPECT_EQ(slurm_.all.size(), 3u);
}

TEST_F(SlurmLauncherTest, LeavesTheJobsOfOtherServersAlone) {
  SlurmSettings other = launcher_settings();
  other.jobs.mark = "000000";
  const auto theirs = server(other);
  ASSERT_TRUE(theirs->ensure(numbered_gang(1, {"n1"})));
  const auto launcher = server();
  EXPECT_TRUE(launcher->list().empty());
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 1u);
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  EXPECT_EQ(slurm_.running(), 2u);
}

// Marks are short: those of two data directories may be alike.
TEST_F(SlurmLauncherTest, LeavesJobsThatAreSealedWithAnotherKeyAlone) {
  const auto with_key = [](const std::string& key) {
    SlurmSettings settings = launcher_settings();
    settings.seal = [key](const std::string& token, const std::string& attempt) {
      return key + "/" + attempt + "/" + token;
    };
    settings.unseal = [key](const std::string& sealed,
                            const std::string& attempt) -> Result<std::string> {
      const std::string prefix = key + "/" + attempt + "/";
      if (!sealed.starts_with(prefix)) return corrupt("sealed with another key");
      return sealed.substr(prefix.size());
    };
    return settings;
  };
  const auto theirs = server(with_key("theirs"));
  ASSERT_TRUE(theirs->ensure(numbered_gang(1, {"n1"})));
  const auto launcher = server(with_key("ours"));
  EXPECT_TRUE(launcher->list().empty());
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 1u);
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n2"})));
  EXPECT_EQ(slurm_.running(), 2u);
  EXPECT_EQ(theirs->list().size(), 1u);
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(slurm_.running(), 2u);
}

TEST_F(SlurmLauncherTest, GivesRunningGangsDifferentSubnets) {
  auto launcher = server();
  for (uint64_t job = 1; job <= 3; ++job) {
    ASSERT_TRUE(launcher->ensure(numbered_gang(job, {"n1", "n2"})));
    launcher = server();  // with an empty memory
  }
  std::vector<networks::Subnet> subnets;
  for (const auto& [id, job] : slurm_.all)
    subnets.push_back(read_job_comment(job.request.comment)->subnet);
  EXPECT_FALSE(subnets[0].overlaps(subnets[1]) || subnets[1].overlaps(subnets[2]) ||
               subnets[0].overlaps(subnets[2]));
}

// Seals of one word each, since blanks separate the members of a comment.
SlurmSettings settings_with_users() {
  SlurmSettings settings = launcher_settings();
  const auto one_word = [](std::string context) {
    std::ranges::replace(context, ' ', '_');
    return context + "#";
  };
  settings.seal = [=](const std::string& token, const std::string& context) {
    return one_word(context) + token;
  };
  settings.unseal = [=](const std::string& sealed,
                        const std::string& context) -> Result<std::string> {
    if (!sealed.starts_with(one_word(context))) return corrupt("sealed with another context");
    return sealed.substr(one_word(context).size());
  };
  settings.jobs.unix_users = {{"ana", {"alice", 1001, 100}}, {"bob", {"bob", 1002, 100}}};
  return settings;
}

Gang gang_of(uint64_t job, const std::string& submitter) {
  Gang gang = numbered_gang(job, {"n1"});
  gang.submitter = submitter;
  return gang;
}

TEST_F(SlurmLauncherTest, FindsAndCancelsTheJobsOfAllAccounts) {
  ASSERT_TRUE(server(settings_with_users())->ensure(gang_of(1, "ana")));
  ASSERT_TRUE(server(settings_with_users())->ensure(gang_of(2, "bob")));
  EXPECT_EQ(slurm_.all.at(1).shown.user, "alice");
  EXPECT_EQ(slurm_.all.at(2).shown.user, "bob");
  SlurmSettings without_users = settings_with_users();
  without_users.jobs.unix_users.clear();
  const auto launcher = server(without_users);
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 2u) << "also if the configuration names no accounts any more";
  EXPECT_EQ(agents[0].token, "token1");
  ASSERT_TRUE(launcher->remove({1, 1}));
  ASSERT_TRUE(launcher->remove({2, 1}));
  EXPECT_EQ(slurm_.running(), 0u);
}

TEST_F(SlurmLauncherTest, StartsNothingForASubmitterWithoutAnAccount) {
  const auto launcher = server(settings_with_users());
  const auto refused = launcher->ensure(gang_of(1, "eve"));
  EXPECT_EQ(refused.error().kind, Kind::invalid);
  EXPECT_NE(refused.error().message.find("'eve' has no unix_user"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(slurm_.all.empty());
}

TEST_F(SlurmLauncherTest, IsNotMadeIfJobsCannotBeSubmittedForAnAccount) {
  slurm_.refused_user = "bob";
  const auto made = make_slurm(settings_with_users(),
                               {slurm_.client(), slurm_.client(), slurm_.client()}, clock_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Kind::denied);
  EXPECT_EQ(made.error().message, "slurm.users.\"bob\".unix_user: no jobs of bob");
}

// Comments are public, and each account may submit jobs with any comment.
TEST_F(SlurmLauncherTest, IgnoresJobsOfOtherAccountsWithACopiedComment) {
  const auto launcher = server(settings_with_users());
  ASSERT_TRUE(launcher->ensure(gang_of(1, "ana")));
  SlurmJobRequest copy = slurm_.all.at(1).request;
  copy.user = {"bob", 1002, 100};
  ASSERT_TRUE(slurm_.client()->submit(copy));
  EXPECT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(slurm_.running(), 2u) << "it is not the server's to cancel";
  slurm_.all.at(1).shown.state = "FAILED";
  EXPECT_FALSE(launcher->list().at(0).alive) << "the copy does not keep the attempt alive";
}

// An account can copy the comment of its own job: the copy claims processors that it does not have.
TEST_F(SlurmLauncherTest, CountsOnlyOneJobOfAnAttemptAsUsingItsNode) {
  const auto launcher = server(settings_with_users());
  ASSERT_TRUE(launcher->ensure(gang_of(1, "ana")));
  SlurmSettings standby = settings_with_users();
  standby.why_not = [] { return "another server writes the ledger"; };
  const auto other = server(standby);
  for (int copies = 0; copies < 5; ++copies)
    ASSERT_TRUE(slurm_.client()->submit(slurm_.all.at(1).request));
  slurm_.nodes[0].cpus_allocated = 2 + 5 + 7;  // of the job, of the copies, and of another user
  EXPECT_EQ(other->machines().at(0).cpus, 16 - 5 - 7);
}

TEST_F(SlurmLauncherTest, SaysHowAForgottenJobHasEndedIfTheAccountingKnowsIt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(numbered_gang(1, {"n1"})));
  ASSERT_TRUE(launcher->list().at(0).alive);
  SlurmJob ended = slurm_.all.at(1).shown;
  ended.state = "FAILED";
  ended.reason = "exit code 3";
  slurm_.accounted = {ended};
  slurm_.all.clear();
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_FALSE(agents[0].alive);
  EXPECT_EQ(agents[0].note, "Slurm job 1 is FAILED (exit code 3)");
  ASSERT_TRUE(launcher->remove({1, 1}));
  EXPECT_TRUE(launcher->list().empty());
}

}  // namespace
}  // namespace trainyard::launch

#include "launch/slurm/served_attempts.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "launch/nodes/host_order.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "launch/testing/memory_slurm.hpp"

namespace trainyard::launch {
namespace {

// Servers over one Slurm in memory, whose agents' links are the test's.
class SharedJobs : public testing::Test {
 protected:
  SharedJobs() {
    for (const char* name : {"n1", "n2"}) {
      SlurmNode& node = slurm_.nodes.emplace_back();
      node.name = node.address = name;
      node.states = {"IDLE"};
      node.partitions = {"train"};
      node.cpus = 16;
      node.memory_mib = 1000;
    }
    connect();
  }

  void connect() {
    links_.connect([this](const AllocationOrder& order) {
      if (linked_) sent_.push_back(order);
      return linked_;
    });
  }

  std::unique_ptr<Launcher> server() {
    SlurmSettings settings;
    settings.own_thread = false;
    settings.links = &links_;
    settings.jobs.mark = "3fa91c";
    settings.jobs.program_directory = "/opt/trainyard";
    settings.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    settings.seal = [](const std::string& token, const std::string&) { return token; };
    settings.unseal = [](const std::string& sealed, const std::string&) -> Result<std::string> {
      return sealed;
    };
    auto made = make_slurm(settings, {slurm_.client(), slurm_.client(), slurm_.client()}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  static Gang child(uint64_t job, const std::string& machine = "n1") {
    Gang gang;
    gang.attempt = {job, 1};
    gang.token = "token" + std::to_string(job);
    gang.of_array = true;
    gang.run_time_max = 1h;
    gang.members.push_back({{machine, {2, 100 << 20, 0}}, "order"});
    return gang;
  }

  static AllocationReport report(uint64_t allocation, uint64_t job, uint32_t served) {
    AllocationReport report;
    report.allocation = allocation;
    report.served = served;
    report.attempt = {job, 1};
    report.token = "token" + std::to_string(job);
    report.machine = "n1";
    return report;
  }
  // Returns why the agent is refused. Attempts of the job number N are the Nth of an allocation.
  std::string hello(uint64_t allocation, uint64_t job) {
    return links_.report(report(allocation, job, uint32_t(job - 1)));
  }
  void idle(uint64_t allocation, uint64_t job, Duration left = 80min, bool keeps_host = false) {
    AllocationReport idle = report(allocation, job, uint32_t(job - 1));
    idle.idle = true;
    idle.keeps_host = keeps_host;
    idle.time_left = left;
    EXPECT_EQ(links_.report(std::move(idle)), "");
  }
  // "1 2?": attempts that are listed alive, with "?" those on a node where it is not known.
  static std::string alive(Launcher& launcher) {
    std::string text;
    for (const Agent& agent : launcher.list())
      if (agent.alive)
        text +=
            (text.empty() ? "" : " ") +
            (agent.unknown_on.empty() ? std::to_string(agent.attempt.job) : agent.unknown_on + "?");
    return text;
  }

  TestClock clock_;
  MemorySlurm slurm_;
  AgentLinks links_;
  std::vector<AllocationOrder> sent_;
  bool linked_ = true;
};

TEST_F(SharedJobs, AJobServesChildrenInSequence) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  hello(1, 1);
  idle(1, 1);
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_TRUE(agents[0].alive && agents[0].idle) << "another one may get its host";
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.size(), 1u);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].from, (domain::AttemptId{1, 1}));
  EXPECT_FALSE(sent_[0].same_host);
  const auto order = read_host_order(sent_[0].order);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->served, 1u);
  EXPECT_EQ(order->idle_max, 5s);
  EXPECT_EQ(order->record.attempt, (domain::AttemptId{2, 1}));
  EXPECT_EQ(alive(*launcher), "2");
  EXPECT_EQ(launcher->list()[0].token, "token2");
  ASSERT_TRUE(launcher->remove({1, 1}));
  hello(1, 2);
  EXPECT_EQ(alive(*launcher), "2") << "what a job served before is removed without it";
  ASSERT_TRUE(launcher->remove({2, 1}));
  EXPECT_EQ(slurm_.running(), 0u);
}

TEST_F(SharedJobs, ServeOnlyAttemptsThatFit) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1, 74min);
  Gang longer = child(2), larger = child(3), others = child(4), single = child(5);
  others.submitter = "ana";
  larger.members[0].share.cpus = 3;
  single.of_array = false;
  for (const Gang& gang : {longer, larger, others, single, child(6, "n2")})
    ASSERT_TRUE(launcher->ensure(gang));
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(slurm_.all.size(), 6u);
}

TEST_F(SharedJobs, AnOrderThatWasLostIsSentAgain) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  hello(1, 1);  // on another link
  idle(1, 1);
  EXPECT_EQ(alive(*launcher), "2");
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].order, sent_[0].order);
}

TEST_F(SharedJobs, AnAttemptThatHasNotBegunIsStartedElsewhere) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  slurm_.all.at(1).shown.state = "FAILED";  // its agent was killed
  EXPECT_TRUE(launcher->list().empty()) << "neither dead nor alive: control starts it";
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.size(), 2u);
  EXPECT_EQ(alive(*launcher), "2");
}

TEST_F(SharedJobs, AnAttemptThatHasBegunIsDeadWithItsJob) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  hello(1, 2);
  slurm_.end_host({1, 1}, 0, 137);
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_EQ(agents[0].attempt, (domain::AttemptId{2, 1}));
  EXPECT_FALSE(agents[0].alive);
}

TEST_F(SharedJobs, AnIdleJobWithoutALinkIsNotWaitedFor) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  linked_ = false;
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.size(), 2u);
}

TEST_F(SharedJobs, ANewServerLearnsTheServedAttempts) {
  {
    const auto former = server();
    ASSERT_TRUE(former->ensure(child(1)));
    idle(1, 1);
    ASSERT_TRUE(former->ensure(child(2)));
    hello(1, 2);
    former->list();
  }
  slurm_.all.at(1).shown.nodes = "n1";
  const auto launcher = server();
  EXPECT_EQ(alive(*launcher), "1 n1?");
  const auto removed = launcher->remove({1, 1});
  ASSERT_FALSE(removed) << "it may serve another one";
  EXPECT_EQ(removed.error().kind, Kind::unavailable);
  hello(1, 2);
  EXPECT_EQ(alive(*launcher), "2");
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 1u);
}

TEST_F(SharedJobs, AJobThatNeverReportsIsCancelledWithItsFirstAttempt) {
  {
    const auto former = server();
    ASSERT_TRUE(former->ensure(child(1)));
  }
  slurm_.all.at(1).shown.nodes = "n1";
  const auto launcher = server();
  EXPECT_FALSE(launcher->remove({1, 1}));
  clock_.advance(61s);
  EXPECT_TRUE(launcher->remove({1, 1}));
  EXPECT_EQ(slurm_.running(), 0u);
}

TEST_F(SharedJobs, IdleOnesAreReleasedForPendingJobsOnTheirNodes) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  ASSERT_TRUE(launcher->ensure(child(2, "n2")));
  idle(1, 1);
  AllocationReport other = report(2, 2, 0);
  other.machine = "n2";
  other.idle = true;
  other.time_left = 80min;
  EXPECT_EQ(links_.report(std::move(other)), "");
  slurm_.state_of_new_jobs = "PENDING";
  Gang gang = child(3);
  gang.of_array = false;
  ASSERT_TRUE(launcher->ensure(gang));
  slurm_.all.at(3).shown.reason = "Resources";
  launcher->list();
  EXPECT_TRUE(sent_.empty()) << "an attempt may be on its way to it";
  clock_.advance(2s);
  slurm_.all.at(3).shown.reason = "None";
  launcher->list();
  EXPECT_TRUE(sent_.empty()) << "Slurm is about to start it";
  slurm_.all.at(3).shown.reason = "Resources";
  launcher->list();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].allocation, 1u);
  EXPECT_EQ(sent_[0].order, "");
}

// Slurm's answer is older than what agents say.
TEST_F(SharedJobs, IdleOnesAreNotPendingThemselves) {
  slurm_.state_of_new_jobs = "PENDING";
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  slurm_.all.at(1).shown.reason = "Resources";
  idle(1, 1);
  launcher->list();
  clock_.advance(2s);
  launcher->list();
  EXPECT_TRUE(sent_.empty());
}

// Slurm names the node of a pending job later than its agent has ended an attempt.
TEST_F(SharedJobs, AJobServesAnotherChildBeforeSlurmShowsThatItRuns) {
  slurm_.state_of_new_jobs = "PENDING";
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  launcher->list();
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.size(), 1u);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(SharedJobs, IdleOnesServeWhileSlurmDoesNotAnswer) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  slurm_.away = "Unable to contact slurm controller";
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(sent_.size(), 1u);
  ASSERT_TRUE(launcher->ensure(child(3)));
  EXPECT_EQ(alive(*launcher), "2 3") << "one waits for Slurm";
  hello(1, 2);
  idle(1, 2);
  EXPECT_EQ(alive(*launcher), "2") << "so that it is ensured again";
  ASSERT_TRUE(launcher->ensure(child(3)));
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_EQ(alive(*launcher), "3");
}

TEST_F(SharedJobs, AgentsSpeakOnlyOfTheirOwn) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  ASSERT_TRUE(launcher->ensure(child(2, "n2")));
  EXPECT_EQ(links_.report(report(2, 2, 0)), "Slurm job 2 is not on n1");
  EXPECT_EQ(links_.report(report(1, 2, 0)), "Slurm job 1 was not made for j2a1");
  EXPECT_EQ(links_.report(report(3, 2, 1)), "Slurm job 3 may not begin another attempt");
  EXPECT_EQ(alive(*launcher), "1 2");
}

// An earlier server has given the second attempt to the first job, whose agent took the order after
// it had linked to this server, which gave the attempt to the second job.
TEST_F(SharedJobs, AnAttemptBeginsInOneOfThem) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  ASSERT_TRUE(launcher->ensure(child(4)));
  EXPECT_EQ(hello(1, 2), "");  // its link is lost afterwards
  EXPECT_EQ(links_.report(report(2, 2, 1)), "Slurm job 1 serves j2a1");
  launcher->list();
  EXPECT_EQ(links_.report(report(2, 2, 1)), "Slurm job 1 serves j2a1");
  EXPECT_EQ(hello(1, 2), "");
  EXPECT_EQ(hello(1, 3), "");
  EXPECT_EQ(alive(*launcher), "3 4");
}

TEST_F(SharedJobs, AnEndingJobBeginsNoOtherAttempt) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  slurm_.all.at(1).shown.state = "COMPLETING";
  EXPECT_EQ(alive(*launcher), "") << "it can be started elsewhere";
  EXPECT_NE(hello(1, 2), "") << "not in the job that ends";
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.at(2).request.after, std::vector<uint64_t>{1});
  EXPECT_EQ(alive(*launcher), "2");
}

TEST_F(SharedJobs, AnAttemptBeginsBeforeItsJobEndsOrNotAtAll) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(hello(1, 2), "");  // not taken before the answer that shows the end
  slurm_.end_host({1, 1}, 0, 137);
  const auto agents = launcher->list();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_EQ(agents[0].attempt, (domain::AttemptId{2, 1}));
  EXPECT_FALSE(agents[0].alive);
  AllocationReport again = report(1, 2, 1);
  again.begun = true;
  EXPECT_EQ(links_.report(again), "") << "it has facts to send";
}

TEST_F(SharedJobs, AnAgentThatWasKilledBeforeItBeganIsNotLost) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  slurm_.end_host({1, 1}, 0, 137);  // its job has not ended yet
  EXPECT_TRUE(launcher->list().empty());
  ASSERT_TRUE(launcher->ensure(child(2)));
  EXPECT_EQ(slurm_.all.size(), 2u);
}

TEST_F(SharedJobs, OutdatedReportsAreIgnored) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1);
  ASSERT_TRUE(launcher->ensure(child(2)));
  hello(1, 2);
  EXPECT_EQ(alive(*launcher), "2");
  idle(1, 1);  // sent on a link that was replaced
  EXPECT_EQ(alive(*launcher), "2");
  ASSERT_TRUE(launcher->ensure(child(3)));
  EXPECT_EQ(slurm_.all.size(), 2u);
  hello(1, 2);
  idle(1, 1);  // before the other one was taken
  EXPECT_EQ(alive(*launcher), "2 3");
}

TEST_F(SharedJobs, AFormerServersOrderCounts) {
  {
    const auto former = server();
    ASSERT_TRUE(former->ensure(child(1)));
    idle(1, 1);
    ASSERT_TRUE(former->ensure(child(2)));
  }
  slurm_.all.at(1).shown.nodes = "n1";
  const auto launcher = server();
  idle(1, 1);  // its agent links before it takes the order
  ASSERT_TRUE(launcher->ensure(child(3)));
  hello(1, 2);
  EXPECT_EQ(alive(*launcher), "2");
  ASSERT_TRUE(launcher->ensure(child(3)));
  EXPECT_EQ(slurm_.all.size(), 2u);
}

TEST_F(SharedJobs, AKeptHostIsReused) {
  const auto launcher = server();
  ASSERT_TRUE(launcher->ensure(child(1)));
  idle(1, 1, 80min, true);
  launcher->list();
  const auto reused = launcher->reuse_host({1, 1}, child(2));
  ASSERT_TRUE(reused) << reused.error().message;
  EXPECT_TRUE(*reused);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].same_host);
  EXPECT_EQ(sent_[0].order, "order");
  EXPECT_EQ(alive(*launcher), "2");
  const auto again = launcher->reuse_host({1, 1}, child(3));
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
}

}  // namespace
}  // namespace trainyard::launch

#include "control/control_time.hpp"

#include <gtest/gtest.h>

#include "control/testing/test_cluster.hpp"

namespace trainyard::control {
namespace {

using domain::HostState;
using domain::JobState;
using test::TestCluster;

constexpr Instant kStart{Duration{1'763'631'900'000}};

// Simulates both clocks of a machine; the test sets each.
class TwoClocks final : public Clock {
 public:
  Instant now() override { return wall; }
  std::chrono::nanoseconds monotonic() override { return steady; }
  void pass(Duration by) { wall += by, steady += by; }
  Instant wall = kStart;
  Duration steady = 1h;
};

// The record outlives the processes of a machine.
struct Machine {
  TwoClocks clock;
  ClockSettings settings;
  Machine() {
    settings.boot = "this one";
    settings.keep = [this](const ClockRecord& record) { settings.record = record; };
  }
  Machine(const Machine&) = delete;
};

TEST(ControlTime, EqualsTheWallClockUntilThatIsSet) {
  Machine machine;
  ControlTime time(machine.clock, machine.settings);
  EXPECT_EQ(time.now(), kStart);
  machine.clock.pass(10min);
  EXPECT_EQ(time.now(), kStart + 10min);
  EXPECT_EQ(time.offset(), 0s);
}

TEST(ControlTime, DoesNotFollowAWallClockThatIsSet) {
  Machine machine;
  ControlTime time(machine.clock, machine.settings);
  machine.clock.wall += 1h;
  EXPECT_EQ(time.now(), kStart);
  EXPECT_EQ(time.offset(), 1h);
  machine.clock.pass(1min);
  machine.clock.wall -= 3h;
  EXPECT_EQ(time.now(), kStart + 1min);
  EXPECT_EQ(time.offset(), -2h);
}

TEST(ControlTime, IgnoresSmallCorrections) {
  Machine machine;
  ControlTime time(machine.clock, machine.settings);
  for (int i = 0; i < 9; ++i) {
    machine.clock.wall += 100ms;
    EXPECT_EQ(time.now(), kStart);
    EXPECT_EQ(time.offset(), 0s);
  }
  machine.clock.wall += 100ms;
  time.now();
  EXPECT_EQ(time.offset(), 1s) << "together they are a jump";
}

TEST(ControlTime, StandsStillWhileTheMachineIsSuspended) {
  Machine machine;
  ControlTime time(machine.clock, machine.settings);
  machine.clock.wall += 8h;  // the monotonic clock stood still
  EXPECT_EQ(time.now(), kStart);
  EXPECT_EQ(time.offset(), 8h);
}

TEST(ControlTime, CountsLittleTimeWithoutCalls) {
  Machine machine;
  machine.settings.unwatched_max = 30s;
  ControlTime time(machine.clock, machine.settings);
  machine.clock.pass(3h);  // a stopped process: both clocks continued
  EXPECT_EQ(time.now(), kStart + 30s);
  EXPECT_EQ(time.offset(), 3h - 30s);
  machine.clock.pass(20s);
  EXPECT_EQ(time.now(), kStart + 50s);
  ControlTime next(machine.clock, machine.settings);
  EXPECT_EQ(next.now(), kStart + 50s) << "a restart does not add it";
}

TEST(ControlTime, ContinuesAfterARestart) {
  Machine machine;
  {
    ControlTime time(machine.clock, machine.settings);
    machine.clock.wall -= 1h;
    time.now();
  }
  machine.clock.pass(10min);
  machine.clock.wall += 5h;  // between two calls
  ControlTime time(machine.clock, machine.settings);
  EXPECT_EQ(time.now(), kStart + 10min);
  EXPECT_EQ(time.offset(), 4h);
}

TEST(ControlTime, UsesTheWallClockAfterAReboot) {
  Machine machine;
  {
    ControlTime time(machine.clock, machine.settings);
    machine.clock.wall += 1h;
    time.now();
  }
  machine.settings.boot = "another one";
  machine.clock.steady = 1s;
  machine.clock.wall += 20min;
  {
    ControlTime time(machine.clock, machine.settings);
    EXPECT_EQ(time.now(), kStart + 20min);
    EXPECT_EQ(time.offset(), 1h);
  }
  machine.settings.boot = "a third one";
  machine.clock.steady = 1s;
  machine.clock.wall -= 9h;
  ControlTime time(machine.clock, machine.settings);
  EXPECT_EQ(time.now(), kStart + 20min) << "it never goes back";
  machine.clock.pass(1min);
  EXPECT_EQ(time.now(), kStart + 21min);
}

TEST(ControlTime, IsNotBehindTheLedger) {
  Machine machine;
  ControlTime time(machine.clock, machine.settings);
  time.not_before(kStart + 2h);
  EXPECT_EQ(time.now(), kStart + 2h);
  EXPECT_EQ(time.offset(), -2h);
  time.not_before(kStart);
  EXPECT_EQ(time.now(), kStart + 2h);
}

TEST(ControlTime, StoresItsRecordAsJson) {
  const ClockRecord record{"4b7d", 123ms, -5ms, kStart};
  const auto read = clock_record_from_json(to_json(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->boot, record.boot);
  EXPECT_EQ(read->base, record.base);
  EXPECT_EQ(read->offset, record.offset);
  EXPECT_EQ(read->seen, record.seen);
  EXPECT_FALSE(clock_record_from_json(Json{{"boot", "x"}, {"base", INT64_MAX}}));
  EXPECT_FALSE(clock_record_from_json(Json{{"boot", "x"}, {"offset", INT64_MIN}}));
}

// -- jobs, in a cluster whose two clocks are set independently

struct JumpingCluster {
  Machine machine;
  test::MemoryLogs logs;
  test::KeptLauncher launcher;
  SeededRandom random{1};
  Settings settings;
  std::unique_ptr<ledger::Ledger> ledger = *ledger::open_sqlite(":memory:");
  std::unique_ptr<ControlPlane> control;

  JumpingCluster() {
    settings.account = "123456789012";
    settings.images["machine"] = {};
    settings.scale_gangs = false;
    restart();
  }
  void restart() {
    control.reset();
    settings.clock = machine.settings;
    control = *make_control(settings, *ledger, launcher, logs, machine.clock, random);
  }
  void run() {
    for (int iteration = 0; iteration < 6; ++iteration) {
      control->commit_step();
      control->reconcile_step();
    }
    control->commit_step();
  }
  // Lets time pass in steps: the loops run each second.
  void pass(Duration by) {
    for (; by > 0s; by -= 1s) {
      machine.clock.pass(1s);
      control->reconcile_step();
      control->commit_step();
    }
  }
  void create(CreateJob job) {
    control->create_job(std::move(job), [](const Result<domain::Job>& made) {
      ASSERT_TRUE(made) << made.error().message;
    });
    run();
  }
  std::shared_ptr<const domain::Job> find(const std::string& name) {
    return *control->find({"us-east-1", name});
  }
  // `at` is in the job's time, as its agent reports it.
  void walk(const std::string& name, HostState until) {
    for (;;) {
      const auto job = find(name);
      const domain::Host& host = job->attempt()->hosts[0];
      if (host.state >= until) return;
      wire::StateFact fact;
      fact.number = host.facts_applied + 1;
      fact.state = HostState(int(host.state) + 1);
      fact.at = job->own_time(machine.clock.wall - control->clock_offset());
      control->report({job->number, job->attempt()->number}, 0, fact,
                      [](const Result<FactApplied>& applied) { ASSERT_TRUE(applied); });
      run();
    }
  }
};

CreateJob limited(const std::string& name) {
  CreateJob job = TestCluster::job(name);
  job.spec.spot = true;
  job.spec.max_runtime_seconds = 600;
  job.spec.max_wait_seconds = 1200;
  return job;
}

class ClockJump : public testing::TestWithParam<int> {
 protected:
  const Duration by_ = std::chrono::seconds(GetParam());
};

TEST_P(ClockJump, EndsNoRunningJob) {
  JumpingCluster cluster;
  cluster.create(limited("a"));
  cluster.walk("a", HostState::running);
  cluster.pass(100s);
  cluster.machine.clock.wall += by_;
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::none);
  cluster.pass(498s);
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.pass(3s);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopping)
      << "its limit still applies to elapsed time";
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::max_runtime);
}

TEST_P(ClockJump, EndsNoWaitingJob) {
  JumpingCluster cluster;
  cluster.create(TestCluster::job("holds", 1, "ml.m5.2xlarge"));
  CreateJob job = limited("a");
  job.spec.groups[0].instance_type = "ml.m5.2xlarge";
  job.spec.max_pending_seconds = 900;
  cluster.create(job);
  cluster.pass(100s);
  cluster.machine.clock.wall += by_;
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::waiting);
  cluster.pass(798s);
  EXPECT_EQ(cluster.find("a")->state, JobState::waiting);
  cluster.pass(3s);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::max_pending);
}

TEST_P(ClockJump, BillsElapsedTime) {
  JumpingCluster cluster;
  cluster.create(TestCluster::job("a"));
  cluster.walk("a", HostState::running);
  cluster.pass(100s);
  cluster.machine.clock.wall += by_;
  cluster.pass(20s);
  cluster.walk("a", HostState::finished);
  const auto job = cluster.find("a");
  ASSERT_EQ(job->state, JobState::completed);
  EXPECT_EQ(job->ran(job->modified), 120s);
  EXPECT_LE(job->created, *job->training_start);
  EXPECT_EQ(*job->training_end - *job->training_start, 120s);
  for (const auto& each : job->transitions) EXPECT_GE(*each.end, each.start);
}

TEST_P(ClockJump, KeepsWarmHostsForTheirTime) {
  JumpingCluster cluster;
  CreateJob job = TestCluster::job("a");
  job.spec.keep_alive_seconds = 600;
  cluster.create(job);
  cluster.walk("a", HostState::finished);
  cluster.pass(10s);
  cluster.machine.clock.wall += by_;
  cluster.pass(580s);
  EXPECT_EQ(cluster.find("a")->warm_pool->state, domain::WarmPoolState::available);
  cluster.pass(20s);
  EXPECT_EQ(cluster.find("a")->warm_pool->state, domain::WarmPoolState::terminated);
  EXPECT_EQ(*cluster.find("a")->warm_pool->ended - *cluster.find("a")->warm_pool->available, 600s);
}

TEST_P(ClockJump, DoesNotChangeTheTimeToStop) {
  JumpingCluster cluster;
  cluster.create(TestCluster::job("a"));
  cluster.walk("a", HostState::running);
  cluster.control->stop_job({"us-east-1", "a"}, [](const Result<domain::Job>&) {});
  cluster.run();
  cluster.machine.clock.wall += by_;
  cluster.pass(10s);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopping);
  EXPECT_FALSE(is_final(cluster.find("a")->attempt()->hosts[0].state)) << "it may still upload";
}

TEST_P(ClockJump, ShowsTheNewTimeOfJobsThatAreCreatedAfterIt) {
  JumpingCluster cluster;
  cluster.create(TestCluster::job("before"));
  cluster.machine.clock.wall += by_;
  cluster.create(TestCluster::job("after"));
  EXPECT_EQ(cluster.find("before")->created, kStart);
  EXPECT_EQ(cluster.find("after")->created, kStart + by_);
}

TEST_P(ClockJump, KeepsTheMaxRuntimeAcrossARestart) {
  JumpingCluster cluster;
  cluster.create(limited("a"));
  cluster.walk("a", HostState::running);
  cluster.pass(100s);
  cluster.machine.clock.pass(50s);
  cluster.machine.clock.wall += by_;
  cluster.restart();
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.pass(448s);
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.pass(3s);
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::max_runtime)
      << "the server's downtime counts, the jump does not";
}

INSTANTIATE_TEST_SUITE_P(By, ClockJump, testing::Values(3600, -3600, 86400, -86400),
                         [](const auto& tested) {
                           const int seconds = tested.param;
                           return (seconds < 0 ? "Back" : "Forward") +
                                  std::to_string(std::abs(seconds));
                         });

TEST(SuspendedServer, EndsNoJob) {
  JumpingCluster cluster;
  cluster.machine.settings.unwatched_max = 30s;
  cluster.restart();
  cluster.create(limited("a"));
  cluster.walk("a", HostState::running);
  cluster.pass(100s);
  cluster.machine.clock.pass(5h);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.pass(468s);
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.pass(3s);
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::max_runtime);
}

}  // namespace
}  // namespace trainyard::control

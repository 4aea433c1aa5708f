#include "control/loops.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/testing/test_clock.hpp"
#include "control/testing/test_world.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::control {
namespace {

// Polls for at most a minute, which only a fault takes.
template <class Condition>
bool soon(Condition condition) {
  for (int iteration = 0; iteration < 60'000; ++iteration) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

CreateJob a_job(const std::string& name) {
  CreateJob job;
  job.key = {"us-east-1", name};
  job.spec.image = "machine";
  job.spec.groups = {{"homogeneousCluster", "ml.t3.medium", 1}};
  return job;
}

struct Running {
  explicit Running(Duration reconcile_interval) {
    settings.account = "1";
    settings.images["machine"] = {};
    control = *make_control(settings, *ledger, launcher, logs, clock, random);
    loops.emplace(*control, reconcile_interval);
  }
  os::TemporaryDirectory directory;
  TestClock clock;
  test::MemoryLogs logs;
  test::KeptLauncher launcher;
  SeededRandom random{1};
  Settings settings;
  std::unique_ptr<ledger::Ledger> ledger = *ledger::open_sqlite(directory.path() + "/ledger.db");
  std::unique_ptr<ControlPlane> control;
  std::optional<Loops> loops;
};

TEST(Loops, AnswerAllConcurrentUsersAndLoseNothing) {
  Running cluster(500ms);
  std::atomic<int> created = 0, refused = 0;
  std::vector<std::thread> users;
  constexpr int kUsers = 8, kJobs = 25;
  for (int user = 0; user < kUsers; ++user)
    users.emplace_back([&, user] {
      for (int job = 0; job < kJobs; ++job) {
        const std::string name = "job-" + std::to_string(user) + "-" + std::to_string(job);
        cluster.control->create_job(a_job(name),
                                    [&](const auto& answer) { answer ? ++created : ++refused; });
        cluster.control->create_job(a_job("shared-" + std::to_string(job)),
                                    [&](const auto& answer) { answer ? ++created : ++refused; });
        const auto found = cluster.control->find({"us-east-1", name});
        static_cast<void>(found);
        cluster.control->stop_job({"us-east-1", name}, [](const auto&) {});
      }
    });
  for (auto& user : users) user.join();
  EXPECT_TRUE(soon([&] { return created + refused == 2 * kUsers * kJobs; }));
  EXPECT_EQ(created, kUsers * kJobs + kJobs) << "of jobs with equal names one is created";
  for (int job = 0; job < kJobs; ++job)
    EXPECT_TRUE(cluster.control->find({"us-east-1", "shared-" + std::to_string(job)}));
}

TEST(Loops, StartAJobWithoutWaitingForTheInterval) {
  Running cluster(24h);
  cluster.control->create_job(a_job("a"), [](const auto&) {});
  EXPECT_TRUE(soon([&] { return cluster.launcher.starts > 0; }));
}

TEST(Loops, LookAtTheAgentsWhenTheLauncherNoticesAChange) {
  Running cluster(24h);
  ASSERT_TRUE(soon([&] { return cluster.launcher.lists == 1; })) << "the first look";
  ASSERT_TRUE(cluster.launcher.changed);
  cluster.launcher.changed();
  EXPECT_TRUE(soon([&] { return cluster.launcher.lists == 2; }));
  cluster.loops.reset();
  EXPECT_FALSE(cluster.launcher.changed) << "nothing looks any more";
}

TEST(Loops, RejectCommandsAfterTheirEnd) {
  Running cluster(500ms);
  cluster.loops.reset();
  std::optional<Kind> refused;
  cluster.control->create_job(a_job("a"),
                              [&](const auto& answer) { refused = answer.error().kind; });
  EXPECT_FALSE(refused);
  cluster.control.reset();
  EXPECT_EQ(refused, Kind::unavailable);
}

}  // namespace
}  // namespace trainyard::control

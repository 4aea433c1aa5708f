// Tests gangs whose submission is queued.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "base/testing/test_clock.hpp"
#include "base/thread_safety.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "launch/testing/memory_slurm.hpp"
#include "launch/testing/plain_seals.hpp"

namespace trainyard::launch {
namespace {

// A Slurm in memory for several threads, where submissions wait while the gate is closed. Outlives
// its clients.
class GatedCluster {
 public:
  class Client final : public Slurm {
   public:
    explicit Client(GatedCluster& cluster) : cluster_(cluster), inner_(cluster.slurm_.client()) {}
    Result<std::vector<SlurmJob>> jobs() override {
      const MutexLock lock(cluster_.mutex_);
      return inner_->jobs();
    }
    Result<std::vector<SlurmNode>> nodes() override {
      const MutexLock lock(cluster_.mutex_);
      return inner_->nodes();
    }
    Result<uint64_t> submit(const SlurmJobRequest& request) override {
      MutexLock lock(cluster_.mutex_);
      ++cluster_.submissions_;
      cluster_.changed_.notify_all();
      cluster_.changed_.wait(
          lock, [&]() REQUIRES(cluster_.mutex_) { return cluster_.open_ || cluster_.stopped_; });
      if (!cluster_.open_) return unavailable("stopped");
      return inner_->submit(request);
    }
    Result<void> cancel(uint64_t job, const std::string& name) override {
      const MutexLock lock(cluster_.mutex_);
      return inner_->cancel(job, name);
    }
    void stop() override {
      const MutexLock lock(cluster_.mutex_);
      cluster_.stopped_ = true;
      cluster_.changed_.notify_all();
    }

   private:
    GatedCluster& cluster_;
    const std::unique_ptr<Slurm> inner_;
  };

  std::unique_ptr<Slurm> client() { return std::make_unique<Client>(*this); }
  void set_open(bool open) {
    const MutexLock lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  // Waits until N submissions have begun.
  bool await_submissions(size_t count) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&]() REQUIRES(mutex_) { return submissions_ >= count; });
  }
  size_t jobs() {
    const MutexLock lock(mutex_);
    return slurm_.all.size();
  }

  MemorySlurm slurm_;

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool open_ GUARDED_BY(mutex_) = true, stopped_ GUARDED_BY(mutex_) = false;
  size_t submissions_ GUARDED_BY(mutex_) = 0;
};

class QueuedGangs : public testing::Test {
 protected:
  QueuedGangs() {
    SlurmNode node;
    node.name = node.address = "n1";
    node.states = {"IDLE"};
    node.cpus = 16;
    node.memory_mib = 1000;
    cluster_.slurm_.nodes = {node};
    links_.connect([this](const AllocationOrder& order) {
      sent_.push_back(order);
      return true;
    });
    SlurmSettings settings;
    set_plain_seals(settings);
    settings.links = &links_;
    settings.jobs.mark = "3fa91c";
    settings.jobs.program_directory = "/opt/trainyard";
    settings.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    auto made =
        make_slurm(settings, {cluster_.client(), cluster_.client(), cluster_.client()}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    launcher_ = std::move(*made);
  }
  ~QueuedGangs() override { launcher_.reset(); }

  static Gang child(uint64_t job, double cpus = 2) {
    Gang gang;
    gang.attempt = {job, 1};
    gang.token = "token" + std::to_string(job);
    gang.of_array = true;
    gang.run_time_max = 1h;
    gang.members.push_back({{"n1", {cpus, 10 << 20, 0}}, "order"});
    return gang;
  }
  // Reports the first attempt of an allocation.
  void report(uint64_t allocation, uint64_t job, bool idle) {
    AllocationReport report;
    report.allocation = allocation;
    report.attempt = {job, 1};
    report.token = "token" + std::to_string(job);
    report.machine = "n1";
    report.idle = idle;
    report.time_left = 80min;
    EXPECT_EQ(links_.report(std::move(report)), "");
  }
  // "1 2?": alive, with "?" those that are being submitted.
  std::string alive() {
    std::string text;
    for (const Agent& agent : launcher_->list())
      if (agent.alive && agent.unknown_on.empty())
        text += (text.empty() ? "" : " ") + std::to_string(agent.attempt.job) +
                (agent.note == "is being submitted to Slurm" ? "?" : "");
    return text;
  }
  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  TestClock clock_;
  GatedCluster cluster_;
  AgentLinks links_;
  std::vector<AllocationOrder> sent_;
  std::unique_ptr<Launcher> launcher_;
};

TEST_F(QueuedGangs, AreAliveUntilTheyAreSubmitted) {
  cluster_.set_open(false);
  ASSERT_TRUE(launcher_->ensure(child(1)));
  ASSERT_TRUE(launcher_->ensure(child(1))) << "it is queued once";
  ASSERT_TRUE(launcher_->ensure(child(2)));
  ASSERT_TRUE(cluster_.await_submissions(1));
  EXPECT_EQ(alive(), "1? 2?");
  cluster_.set_open(true);
  EXPECT_TRUE(eventually([&] { return alive() == "1 2"; }));
  EXPECT_EQ(cluster_.jobs(), 2u);
}

TEST_F(QueuedGangs, GoToIdleJobsThatFit) {
  ASSERT_TRUE(launcher_->ensure(child(1)));
  ASSERT_TRUE(eventually([&] { return alive() == "1"; }));
  report(1, 1, false);
  cluster_.set_open(false);
  ASSERT_TRUE(launcher_->ensure(child(2, 3)));
  ASSERT_TRUE(cluster_.await_submissions(2));
  ASSERT_TRUE(launcher_->ensure(child(3, 3)));
  ASSERT_TRUE(launcher_->ensure(child(4)));
  ASSERT_TRUE(launcher_->ensure(child(5)));
  report(1, 1, true);
  EXPECT_EQ(alive(), "4 2? 3? 5?");
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].allocation, 1u);
  cluster_.set_open(true);
  EXPECT_TRUE(eventually([&] { return alive() == "2 3 4 5"; }));
  EXPECT_EQ(cluster_.jobs(), 4u) << "for the gangs 1, 2, 3 and 5";
}

TEST_F(QueuedGangs, AreRemovedBeforeTheirSubmissionOrAfterIt) {
  cluster_.set_open(false);
  ASSERT_TRUE(launcher_->ensure(child(1)));
  ASSERT_TRUE(cluster_.await_submissions(1));
  ASSERT_TRUE(launcher_->ensure(child(2)));
  EXPECT_TRUE(launcher_->remove({2, 1}));
  const auto removed = launcher_->remove({1, 1});
  ASSERT_FALSE(removed) << "Slurm may have its job";
  EXPECT_EQ(removed.error().kind, Kind::unavailable);
  cluster_.set_open(true);
  EXPECT_TRUE(eventually([&] { return alive() == "1"; }));
  // Slurm may show its job before the thread has said that it was submitted.
  EXPECT_TRUE(eventually([&] { return launcher_->remove({1, 1}) || alive() != "1"; }));
  EXPECT_EQ(alive(), "");
  EXPECT_EQ(cluster_.jobs(), 1u);
}

TEST_F(QueuedGangs, FailAtTheNextCallWhenSlurmRejectsThem) {
  cluster_.slurm_.before_submit = [](const SlurmJobRequest&) -> Result<void> {
    return invalid("Invalid qos specification");
  };
  ASSERT_TRUE(launcher_->ensure(child(1)));
  EXPECT_TRUE(eventually([&] { return alive().empty(); }));
  const auto again = launcher_->ensure(child(1));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::invalid);
  EXPECT_EQ(again.error().message, "starting attempt j1a1: Invalid qos specification");
}

// The answer of sbatch was lost: the job may exist, so it is not submitted again before Slurm's
// next answer.
TEST_F(QueuedGangs, WaitForSlurmAfterASubmissionWithoutAnAnswer) {
  cluster_.slurm_.after_submit = [](const SlurmJobRequest&) -> Result<void> {
    return unavailable("sbatch did not end within 30 s");
  };
  ASSERT_TRUE(launcher_->ensure(child(1)));
  EXPECT_TRUE(eventually([&] {
    (void)launcher_->ensure(child(1));
    return alive() == "1";
  }));
  EXPECT_EQ(cluster_.jobs(), 1u);
}

}  // namespace
}  // namespace trainyard::launch

#include "launch/slurm/submissions.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace trainyard::launch {
namespace {

// Answers a submission when the test says so. Outlives its clients.
class GatedSlurm {
 public:
  class Client final : public Slurm {
   public:
    explicit Client(GatedSlurm& gate) : gate_(gate) {}
    Result<std::vector<SlurmJob>> jobs() override { return std::vector<SlurmJob>(); }
    Result<std::vector<SlurmNode>> nodes() override { return std::vector<SlurmNode>(); }
    Result<uint64_t> submit(const SlurmJobRequest& request) override {
      return gate_.submit(request);
    }
    Result<void> cancel(uint64_t, const std::string&) override { return {}; }
    void stop() override { gate_.let(1'000); }

   private:
    GatedSlurm& gate_;
  };

  // Lets N more submissions be answered.
  void let(size_t count) {
    const MutexLock lock(mutex_);
    let_ += count;
    changed_.notify_all();
  }
  void fail_with(std::optional<Error> failure) {
    const MutexLock lock(mutex_);
    failure_ = std::move(failure);
  }
  // Waits until N submissions have begun.
  bool await_begun(size_t count) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60),
                             [&]() REQUIRES(mutex_) { return begun_ >= count; });
  }
  std::string names() {
    const MutexLock lock(mutex_);
    return names_;
  }

 private:
  Result<uint64_t> submit(const SlurmJobRequest& request) {
    MutexLock lock(mutex_);
    const size_t mine = ++begun_;
    names_ += request.name;
    changed_.notify_all();
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return let_ >= mine; });
    if (failure_) return *failure_;
    return 100 + mine;
  }

  Mutex mutex_;
  ConditionVariable changed_;
  size_t let_ GUARDED_BY(mutex_) = 0, begun_ GUARDED_BY(mutex_) = 0;
  std::string names_ GUARDED_BY(mutex_);
  std::optional<Error> failure_ GUARDED_BY(mutex_);
};

class SubmissionsTest : public testing::Test {
 protected:
  std::unique_ptr<Submissions> make(bool own_thread = true) {
    return std::make_unique<Submissions>(
        std::make_unique<GatedSlurm::Client>(slurm_),
        SubmissionHooks{[this]() -> Result<void> {
                          if (!may_) return unavailable("another server writes the ledger");
                          return {};
                        },
                        [this] { return ++changes_; }},
        own_thread);
  }
  static Submission named(uint64_t job) {
    Submission one;
    one.attempt = {job, 1};
    one.request.name = std::to_string(job);
    return one;
  }
  // Waits for N outcomes: "1:101 2:failed".
  static std::string outcomes(Submissions& submissions, size_t count) {
    std::string text;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (size_t taken = 0; taken < count && std::chrono::steady_clock::now() < end;)
      for (const auto& each : submissions.take()) {
        text += (taken++ == 0 ? "" : " ") + std::to_string(each.attempt.job) + ":" +
                (each.job ? std::to_string(*each.job) : each.job.error().message);
      }
    return text;
  }

  GatedSlurm slurm_;
  std::atomic<bool> may_ = true;
  std::atomic<uint64_t> changes_ = 0;
};

TEST_F(SubmissionsTest, SubmitsInOrderWithoutBlockingItsUser) {
  const auto submissions = make();
  for (uint64_t job = 1; job <= 3; ++job) submissions->add(named(job));
  ASSERT_TRUE(slurm_.await_begun(1));
  EXPECT_TRUE(submissions->take().empty());
  slurm_.let(3);
  EXPECT_EQ(outcomes(*submissions, 3), "1:101 2:102 3:103");
  EXPECT_EQ(slurm_.names(), "123");
  EXPECT_EQ(changes_, 3u);
}

TEST_F(SubmissionsTest, PendingSubmissionsCanBeCancelled) {
  const auto submissions = make();
  for (uint64_t job = 1; job <= 3; ++job) submissions->add(named(job));
  ASSERT_TRUE(slurm_.await_begun(1));
  EXPECT_TRUE(submissions->cancel({2, 1}));
  EXPECT_FALSE(submissions->cancel({1, 1})) << "it is in progress";
  EXPECT_FALSE(submissions->cancel({2, 1})) << "it was cancelled";
  slurm_.let(2);
  EXPECT_EQ(outcomes(*submissions, 2), "1:101 3:102");
  EXPECT_EQ(slurm_.names(), "13");
}

TEST_F(SubmissionsTest, SendsNoneBehindOneWithoutAnAnswer) {
  const auto submissions = make();
  slurm_.fail_with(unavailable("away"));
  for (uint64_t job = 1; job <= 3; ++job) submissions->add(named(job));
  ASSERT_TRUE(slurm_.await_begun(1));
  slurm_.let(3);
  EXPECT_EQ(outcomes(*submissions, 3), "1:away 2:away 3:away");
  EXPECT_EQ(slurm_.names(), "1");
  EXPECT_EQ(changes_, 1u);
  slurm_.fail_with({});
  submissions->add(named(4));
  EXPECT_EQ(outcomes(*submissions, 1), "4:102");
}

TEST_F(SubmissionsTest, ContinuesAfterOneThatSlurmRejects) {
  const auto submissions = make();
  slurm_.fail_with(invalid("rejected"));
  submissions->add(named(1));
  submissions->add(named(2));
  slurm_.let(2);
  ASSERT_TRUE(slurm_.await_begun(2)) << "without take()";
  EXPECT_EQ(outcomes(*submissions, 2), "1:rejected 2:rejected");
}

TEST_F(SubmissionsTest, SendsNothingWhileItsServerMayNot) {
  const auto submissions = make();
  may_ = false;
  submissions->add(named(1));
  EXPECT_EQ(outcomes(*submissions, 1), "1:another server writes the ledger");
  EXPECT_EQ(slurm_.names(), "");
  EXPECT_EQ(changes_, 0u);
}

TEST_F(SubmissionsTest, EndsWhileOneIsInProgress) {
  auto submissions = make();
  for (uint64_t job = 1; job <= 3; ++job) submissions->add(named(job));
  ASSERT_TRUE(slurm_.await_begun(1));
  submissions.reset();
  EXPECT_EQ(slurm_.names(), "1");
}

TEST_F(SubmissionsTest, SubmitsInTheCallerWithoutAThread) {
  const auto submissions = make(false);
  slurm_.let(1);
  submissions->add(named(1));
  const auto outcomes = submissions->take();
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(*outcomes[0].job, 101u);
  EXPECT_EQ(outcomes[0].change, 1u);
}

}  // namespace
}  // namespace trainyard::launch

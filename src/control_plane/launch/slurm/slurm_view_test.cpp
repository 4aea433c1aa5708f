#include "launch/slurm/slurm_view.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/testing/test_clock.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::launch {
namespace {

// SlowSlurm answers a query once the test allows it. It outlives the views, which own clients of
// it.
class SlowSlurm {
 public:
  class Client final : public Slurm {
   public:
    explicit Client(SlowSlurm& gate) : gate_(gate) {}
    Result<std::vector<SlurmJob>> jobs() override { return gate_.answer(); }
    Result<std::vector<SlurmNode>> nodes() override { return std::vector<SlurmNode>(); }
    Result<uint64_t> submit(const SlurmJobRequest&) override { return invalid("not in this test"); }
    Result<void> cancel(uint64_t, const std::string&) override { return {}; }
    void stop() override {
      gate_.set([this] { gate_.stopped_ = true; });
    }

   private:
    SlowSlurm& gate_;
  };

  void set(const std::function<void()>& change) {
    const MutexLock lock(mutex_);
    change();
    changed_.notify_all();
  }
  // Waits until a query is in progress. Returns false if there is none within 60 s.
  bool is_queried() {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [this] { return queried_; });
  }

  bool open_ = true, stopped_ = false, queried_ = false;
  std::string failure_;
  size_t jobs_ = 0;

 private:
  Result<std::vector<SlurmJob>> answer() {
    MutexLock lock(mutex_);
    queried_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || stopped_; });
    queried_ = false;
    if (!open_ || !failure_.empty()) return unavailable(open_ ? failure_ : "stopped");
    return std::vector<SlurmJob>(jobs_);
  }

  Mutex mutex_;
  ConditionVariable changed_;
};

class SlurmViewTest : public testing::Test {
 protected:
  std::unique_ptr<SlurmView> view() {
    auto made =
        std::make_unique<SlurmView>(std::make_unique<SlowSlurm::Client>(slurm_), clock_, true);
    EXPECT_TRUE(made->read());
    return made;
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
  SlowSlurm slurm_;
};

TEST_F(SlurmViewTest, ReturnsItsLastAnswerWhileSlurmDoesNotAnswer) {
  const auto view = this->view();
  slurm_.set([this] {
    slurm_.open_ = false;
    slurm_.jobs_ = 3;
  });
  EXPECT_TRUE(view->query_now()->jobs.empty());
  ASSERT_TRUE(slurm_.is_queried());
  EXPECT_TRUE(view->query_now()->jobs.empty());
  EXPECT_EQ(view->why_away(), "");
  slurm_.set([this] { slurm_.open_ = true; });
  EXPECT_TRUE(eventually([&] { return view->query_now()->jobs.size() == 3; }));
}

TEST_F(SlurmViewTest, CountsASlowQueryAsUnanswered) {
  const auto view = this->view();
  slurm_.set([this] { slurm_.open_ = false; });
  (void)view->query_now();
  ASSERT_TRUE(slurm_.is_queried());
  clock_.advance(SlurmView::kQuickMax + 1s);
  EXPECT_EQ(view->why_away(), "slurmctld has not answered for more than 5 s");
  slurm_.set([this] { slurm_.open_ = true; });
  EXPECT_TRUE(eventually([&] { return view->why_away().empty(); }));
}

TEST_F(SlurmViewTest, ReturnsTheCurrentState) {
  const auto view = this->view();
  for (size_t jobs = 1; jobs <= 20; ++jobs) {
    slurm_.set([&] { slurm_.jobs_ = jobs; });
    EXPECT_TRUE(eventually([&] { return view->query_now()->jobs.size() == jobs; }));
    EXPECT_EQ(view->last()->jobs.size(), jobs);
  }
}

TEST_F(SlurmViewTest, KeepsItsAnswerAfterAFailure) {
  slurm_.jobs_ = 2;
  const auto view = this->view();
  slurm_.set([this] { slurm_.failure_ = "slurmctld does not answer"; });
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(view->query_now()->jobs.size(), 2u);
    return view->why_away() == "slurmctld does not answer";
  }));
  slurm_.set([this] { slurm_.failure_ = ""; });
  EXPECT_TRUE(eventually([&] { return view->query_now() && view->why_away().empty(); }));
}

TEST_F(SlurmViewTest, NumbersTheChangesThatAnAnswerShows) {
  const auto view = this->view();
  EXPECT_EQ(view->query_now()->changes, 0u);
  const uint64_t change = view->note_change();
  EXPECT_TRUE(eventually([&] { return view->query_now()->changes == change; }));
  slurm_.set([this] { slurm_.open_ = false; });
  view->note_away("sbatch did not end");
  EXPECT_EQ(view->why_away(), "sbatch did not end");
  slurm_.set([this] { slurm_.open_ = true; });
  EXPECT_TRUE(eventually([&] { return view->query_now() && view->why_away().empty(); }));
}

TEST_F(SlurmViewTest, EndsWhileAQueryIsInProgress) {
  auto view = this->view();
  slurm_.set([this] { slurm_.open_ = false; });
  (void)view->query_now();
  ASSERT_TRUE(slurm_.is_queried());
  view.reset();
  EXPECT_FALSE(slurm_.queried_);
}

}  // namespace
}  // namespace trainyard::launch

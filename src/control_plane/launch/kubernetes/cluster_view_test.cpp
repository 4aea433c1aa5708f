#include "launch/kubernetes/cluster_view.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "launch/testing/locked_random.hpp"
#include "launch/testing/memory_kubernetes.hpp"

namespace trainyard::launch {
namespace {

// A view with its own threads, of a cluster in memory that streams. Waits end by events; their
// deadline is far beyond what a busy machine needs.
class KubernetesViewTest : public testing::Test {
 protected:
  static constexpr Duration kDeadline = 60s;

  KubernetesViewTest() {
    KubernetesNode node;
    node.name = "n1";
    node.ready = true;
    cluster_.nodes = {node};
    cluster_.stream = true;
  }

  Result<void> begin() {
    view_.emplace(cluster_.client(), "3fa91c", clock_, random_, true);
    view_->on_change([this] {
      const MutexLock lock(mutex_);
      ++changes_;
      changed_.notify_all();
    });
    return view_->begin();
  }

  // Waits until the condition holds, which is checked after each change only.
  bool wait_for(const std::function<bool()>& condition) {
    for (;;) {
      int before = 0;
      {
        const MutexLock lock(mutex_);
        before = changes_;
      }
      if (condition()) return true;
      MutexLock lock(mutex_);
      if (!changed_.wait_for(lock, kDeadline,
                             [&]() REQUIRES(mutex_) { return changes_ != before; }))
        return false;
    }
  }

  // A Job as a launcher creates it.
  static Json new_job() {
    KubernetesJob job;
    job.name = "trainyard-3fa91c-j1a1";
    job.uid = "later";
    job.attempt = {1, 1};
    job.hosts = 2;
    job.suspended = true;
    return json_of(job, "3fa91c");
  }

  int lists() {
    int sum = 0;
    cluster_.change([&] {
      for (const int each : cluster_.lists) sum += each;
    });
    return sum;
  }

  TestClock clock_;
  LockedRandom random_;
  MemoryKubernetes cluster_;
  Mutex mutex_;
  ConditionVariable changed_;
  int changes_ GUARDED_BY(mutex_) = 0;
  std::optional<KubernetesView> view_;
};

TEST_F(KubernetesViewTest, WakesTheCallerAtAnEvent) {
  ASSERT_TRUE(begin());
  const auto created = view_->create_job(new_job());
  ASSERT_TRUE(created) << created.error().message;
  ASSERT_TRUE(view_->submit_job(created->name, ""));
  ASSERT_TRUE(wait_for([&] { return view_->pods()->size() == 2; }));
  cluster_.change([&] { cluster_.end_host({1, 1}, 1, "OOMKilled"); });
  ASSERT_TRUE(wait_for([&] {
    return std::ranges::any_of(*view_->pods(),
                               [](const auto& pod) { return pod.second.reason == "OOMKilled"; });
  }));
  EXPECT_EQ(lists(), 4) << "one for each resource";
}

TEST_F(KubernetesViewTest, ShowsItsOwnWritesAtOnce) {
  ASSERT_TRUE(begin());
  const auto created = view_->create_job(new_job());
  ASSERT_TRUE(created) << created.error().message;
  const std::string name = created->name;
  ASSERT_TRUE(view_->jobs()->contains(name));
  EXPECT_TRUE(view_->jobs()->at(name).suspended);
  ASSERT_TRUE(view_->submit_job(name, ""));
  EXPECT_FALSE(view_->jobs()->at(name).suspended);
  ASSERT_TRUE(view_->delete_job(name, created->uid));
  EXPECT_FALSE(view_->jobs()->contains(name));
}

TEST_F(KubernetesViewTest, NoticesAJobThatAnotherDeletes) {
  ASSERT_TRUE(begin());
  ASSERT_TRUE(view_->create_job(new_job()));
  cluster_.change([&] { cluster_.jobs.clear(); });
  EXPECT_TRUE(wait_for([&] { return view_->jobs()->empty(); }));
}

TEST_F(KubernetesViewTest, ContinuesAfterAnOutage) {
  ASSERT_TRUE(begin());
  cluster_.change([&] { cluster_.away = "connection refused"; });
  EXPECT_EQ(view_->nodes()->size(), 1u);
  cluster_.change([&] {
    cluster_.nodes.clear();
    cluster_.away = "";
  });
  EXPECT_TRUE(wait_for([&] { return view_->nodes()->empty(); }));
}

TEST_F(KubernetesViewTest, SumsTheUseOfOthersByNode) {
  cluster_.used_by_others["n1"] = {100, 1000};
  ASSERT_TRUE(begin());
  EXPECT_EQ(view_->used_by_others().at("n1"), (KubernetesAmounts{100, 1000}));
  cluster_.change([&] { cluster_.used_by_others["n1"] = {300, 1000}; });
  EXPECT_TRUE(wait_for([&] { return view_->used_by_others().at("n1").cpus_milli == 300; }));
}

TEST_F(KubernetesViewTest, FailsAtTheStartWithoutTheRightToWatch) {
  cluster_.watch_forbidden = "cannot watch resource \"jobs\"";
  const auto begun = begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind, Kind::denied);
  EXPECT_NE(begun.error().message.find("cannot watch"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::launch

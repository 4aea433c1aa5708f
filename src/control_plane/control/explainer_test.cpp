#include "control/explainer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "control/testing/test_cluster.hpp"

namespace trainyard::control {
namespace {

using test::TestCluster;

const reconcile::ExplainRights kEverything{.may_see = [](const domain::Job&) { return true; },
                                           .may_use = [](const domain::JobKey&) { return true; }};

TEST(Explainer, UsesTheSnapshotOfTheLastReconcileStep) {
  TestCluster cluster;
  EXPECT_EQ(cluster.control->explain({"us-east-1", "a"}, kEverything).error().kind,
            Kind::not_found);
  // Each job takes the whole machine.
  const uint32_t hosts = 1;
  const std::string type = "ml.m5.24xlarge";
  ASSERT_TRUE(cluster.create(TestCluster::job("a", hosts, type)));
  const auto waits = cluster.control->explain({"us-east-1", "a"}, kEverything);
  ASSERT_TRUE(waits) << waits.error().message;
  EXPECT_FALSE(waits->reason.empty());
  ASSERT_FALSE(waits->answers.empty());
  EXPECT_TRUE(waits->answers[0].now);
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  EXPECT_EQ(cluster.control->explain({"us-east-1", "b"}, kEverything).error().kind, Kind::conflict)
      << "it runs";
}

TEST(Explainer, RejectsCallersBeyondTheLimit) {
  Settings settings;
  Explainer explainer(settings);
  reconcile::Snapshot snapshot;
  auto job = std::make_shared<domain::Job>();
  job->number = 1;
  job->key = {"us-east-1", "a"};
  job->spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
  auto other = std::make_shared<domain::Job>(*job);
  other->number = 2;
  other->key.name = "b";
  snapshot.jobs = {job, other};
  explainer.put(std::move(snapshot), from_milliseconds(0));
  std::atomic<bool> released = false;
  std::atomic<size_t> refused = 0, answered = 0;
  // The first caller blocks while its rights are checked; the others wait behind it.
  const reconcile::ExplainRights held{.may_see =
                                          [&](const domain::Job&) {
                                            released.wait(false);
                                            return true;
                                          },
                                      .may_use = [](const domain::JobKey&) { return true; }};
  std::vector<std::thread> callers;
  for (size_t i = 0; i < kExplanationsWaitingMax + 2; ++i)
    callers.emplace_back([&] {
      const auto found = explainer.explain(2, held);
      if (found) {
        ++answered;
      } else {
        EXPECT_EQ(found.error().kind, Kind::exhausted);
        if (++refused == 2) {
          released = true;
          released.notify_all();
        }
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, 2u);
  EXPECT_EQ(answered, kExplanationsWaitingMax);
}

TEST(Preview, PredictsTheOutcomeAndChangesNothing) {
  TestCluster cluster;
  cluster.control->reconcile_step();
  // Each job takes the whole machine.
  const auto whole = [](const std::string& name) {
    return TestCluster::job(name, 1, "ml.m5.24xlarge");
  };
  const auto small = cluster.control->preview_job(TestCluster::job("b"), kEverything, false);
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->reason, "");
  const auto large = cluster.control->preview_job(whole("a"), kEverything, true);
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_NE(large->reason, "");
  EXPECT_FALSE(large->answers.empty());
  EXPECT_TRUE(cluster.control->live_jobs().empty());
  EXPECT_EQ(cluster.control->find({"us-east-1", "a"}).error().kind, Kind::not_found);
  ASSERT_TRUE(cluster.create(whole("a")));
  const auto waits = cluster.control->explain({"us-east-1", "a"}, kEverything);
  ASSERT_TRUE(waits) << waits.error().message;
  EXPECT_EQ(waits->reason, large->reason);
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  EXPECT_EQ(cluster.control->explain({"us-east-1", "b"}, kEverything).error().kind, Kind::conflict)
      << "it runs";
}

TEST(Preview, RejectsRequestsWithTheSameErrorsAsCreation) {
  TestCluster cluster;
  cluster.control->reconcile_step();
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  CreateJob unknown_type = TestCluster::job("c");
  unknown_type.spec.groups.front().instance_type = "ml.unknown";
  for (const CreateJob& refused : {TestCluster::job("a"), unknown_type}) {
    const auto previewed = cluster.control->preview_job(refused, kEverything, false);
    const auto made = cluster.create(refused);
    ASSERT_FALSE(previewed);
    ASSERT_FALSE(made);
    EXPECT_EQ(previewed.error().kind, made.error().kind);
    EXPECT_EQ(previewed.error().message, made.error().message);
  }
}

}  // namespace
}  // namespace trainyard::control

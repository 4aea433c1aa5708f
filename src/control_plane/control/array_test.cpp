// Tests arrays: their children are created in small numbers, depend on each other, fail, and are
// cancelled one by one or all together.
#include "domain/array.hpp"
#include "batch/catalog.hpp"
#include "batch/status.hpp"
#include "control/testing/test_batch.hpp"
#include "domain/stage.hpp"
#include "reconcile/reconcile.hpp"

namespace trainyard::control {
namespace {

using batch::ResourceChange;
using domain::Cancellation;
using domain::JobState;
using domain::Stage;
using test::BatchCluster;

class ArrayCluster : public BatchCluster {
 public:
  static CreateJob array_job(const std::string& id, uint32_t size, double cpus = 1) {
    CreateJob job = batch_job(id, cpus);
    job.spec.array.size = size;
    return job;
  }
  // "waiting 2, succeeded 1"
  std::string counts(const std::string& id) {
    const auto counts = control->count_children(*find(id));
    std::string text;
    for (size_t status = 0; status < counts->of.size(); ++status)
      if (counts->of[status] > 0)
        text += (text.empty() ? "" : ", ") + std::string(batch::status_name(Stage(status))) + " " +
                std::to_string(counts->of[status]);
    return text;
  }
  size_t live_children(const std::string& id) {
    const auto number = find(id)->number;
    const auto live = ledger->live_jobs();
    return size_t(std::ranges::count(*live, number, &domain::Job::parent));
  }
  // Ends every placed child with that exit code, until none is placed.
  void run_all(const std::string& id, int code = 0) {
    for (int round = 0; round < 1'000; ++round) {
      std::vector<std::string> running;
      const auto children = control->children(*find(id), {.children_max = 1'000});
      for (const auto& child : *children)
        if (child.state == JobState::active) running.push_back(child.key.name);
      if (running.empty()) return;
      for (const std::string& child : running) exit(child, code);
    }
    FAIL() << "children are still active after 1000 rounds";
  }
};

TEST(Arrays, EndWithTheirLastChild) {
  ArrayCluster cluster;
  const auto made = cluster.create(cluster.array_job("a", 3, 2));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(cluster.status("a"), "PENDING");
  EXPECT_TRUE(cluster.find("a")->attempts.empty()) << "an array is never placed";
  EXPECT_EQ(cluster.counts("a"), "RUNNABLE 1, STARTING 2") << "the environment has 4 vCPU";
  EXPECT_EQ(cluster.find("a:1")->number, made->number + 2);
  EXPECT_NE(cluster.find("a:2")->wait_reason, "");
  cluster.exit("a:0", 0);
  EXPECT_EQ(cluster.status("a:2"), "STARTING");
  cluster.exit("a:1", 0);
  cluster.exit("a:2", 0);
  EXPECT_EQ(cluster.status("a"), "SUCCEEDED");
  EXPECT_EQ(cluster.counts("a"), "SUCCEEDED 3");
  EXPECT_EQ(cluster.ledger->live_jobs()->size(), 0u);
}

TEST(Arrays, FailOnceAllChildrenHaveEndedIfOneFailed) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 3)));
  cluster.exit("a:1", 7);
  EXPECT_EQ(cluster.status("a:1"), "FAILED");
  EXPECT_EQ(cluster.status("a"), "PENDING");
  cluster.exit("a:0", 0);
  cluster.exit("a:2", 0);
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a")), "Array Child Job failed");
  EXPECT_EQ(cluster.counts("a"), "SUCCEEDED 2, FAILED 1");
}

TEST(Arrays, RetryEachChildByItself) {
  ArrayCluster cluster;
  CreateJob job = cluster.array_job("a", 2);
  job.spec.retry.attempts_max = 2;
  ASSERT_TRUE(cluster.create(job));
  cluster.exit("a:0", 7);
  EXPECT_EQ(cluster.find("a:0")->attempts.size(), 2u);
  EXPECT_EQ(cluster.find("a:1")->attempts.size(), 1u);
  cluster.exit("a:0", 0);
  cluster.exit("a:1", 0);
  EXPECT_EQ(cluster.status("a"), "SUCCEEDED");
}

// Ten thousand children are one row and one command at first, and only kChildrenWaitingMax of them
// wait in memory.
TEST(Arrays, CreateChildrenInSmallNumbers) {
  ArrayCluster cluster;
  const uint64_t commands = cluster.ledger->last_sequence();
  Result<domain::Job> made = internal("not answered");
  cluster.control->create_job(cluster.array_job("a", 10'000),
                              [&](auto answer) { made = std::move(answer); });
  cluster.control->commit_step();
  ASSERT_TRUE(made);
  EXPECT_EQ(cluster.ledger->last_sequence(), commands + 1);
  EXPECT_EQ(cluster.ledger->last_job_number(), made->number + 10'000);
  EXPECT_EQ(cluster.live_children("a"), 0u);
  EXPECT_EQ(cluster.status("a"), "SUBMITTED");
  EXPECT_EQ(cluster.counts("a"), "RUNNABLE 10000");
  cluster.run();
  EXPECT_EQ(cluster.counts("a"), "RUNNABLE 9996, STARTING 4");
  EXPECT_EQ(cluster.live_children("a"), reconcile::kChildrenWaitingMax + 4);
  EXPECT_LT(cluster.ledger->last_sequence(), commands + 20) << "one command creates many children";
  const auto next = cluster.create(cluster.batch_job("b"));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number, made->number + 10'001);
}

TEST(Arrays, ShowChildrenThatAreNotCreatedYet) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 10'000)));
  const auto child = cluster.find("a:9999");
  EXPECT_EQ(child->number, cluster.find("a")->number + 10'000);
  EXPECT_EQ(stage_of(*child), Stage::runnable);
  EXPECT_EQ((*cluster.control->find(child->number))->key.name, "a:9999");
  for (const char* unknown : {"a:10000", "a:-1", "a:x", "b:0", "a:0:0"})
    EXPECT_EQ(cluster.control->find(domain::JobKey{"us-east-1", unknown}).error().kind,
              Kind::not_found)
        << unknown;
}

TEST(Arrays, ListEachChildOnce) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 300, 2)));
  ASSERT_TRUE(cluster.cancel("a:290", Cancellation::cancelled, "not this one"));
  cluster.exit("a:0", 0);
  const auto indices = [&](std::optional<Stage> status, size_t page_size) {
    std::vector<uint32_t> all;
    ledger::ChildQuery query;
    query.stage = status;
    query.children_max = page_size;
    for (int pages = 0; pages < 100; ++pages) {
      const auto page = cluster.control->children(*cluster.find("a"), query);
      for (const auto& child : *page) all.push_back(array_index(child));
      if (page->size() < page_size) break;
      query.first = all.back() + 1;
    }
    return all;
  };
  for (const size_t page_size : {1'000, 100, 7}) {
    const auto all = indices({}, page_size);
    ASSERT_EQ(all.size(), 300u);
    for (uint32_t index = 0; index < 300; ++index) ASSERT_EQ(all[index], index);
    EXPECT_EQ(indices(Stage::failed, page_size), std::vector<uint32_t>{290});
    EXPECT_EQ(indices(Stage::succeeded, page_size), std::vector<uint32_t>{0});
    EXPECT_EQ(indices(Stage::starting, page_size), (std::vector<uint32_t>{1, 2}));
    EXPECT_EQ(indices(Stage::runnable, page_size).size(), 296u);
  }
}

TEST(Arrays, CancelAChildBeforeItIsCreated) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 300, 4)));
  EXPECT_EQ(cluster.live_children("a"), 257u);
  ASSERT_TRUE(cluster.cancel("a:299", Cancellation::cancelled, "not this one"));
  EXPECT_TRUE(cluster.cancel("a:299", Cancellation::terminated, "again"))
      << "it has ended, which is not an error";
  EXPECT_EQ(cluster.status("a:299"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:299")), "not this one");
  EXPECT_EQ(cluster.live_children("a"), 257u) << "the child was created, and had ended";
  EXPECT_EQ(cluster.counts("a"), "RUNNABLE 298, STARTING 1, FAILED 1");
  cluster.restart();
  cluster.run_all("a");
  EXPECT_EQ(cluster.counts("a"), "SUCCEEDED 299, FAILED 1");
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:299")), "not this one");
}

TEST(Arrays, TerminateAllChildrenEvenBeforeTheirCreation) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 1'000, 4)));
  ASSERT_TRUE(cluster.cancel("a", Cancellation::terminated, "enough"));
  EXPECT_EQ(cluster.find("a:0")->state, JobState::stopping);
  EXPECT_EQ(cluster.status("a:1"), "FAILED");
  EXPECT_EQ(cluster.status("a:999"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:1")), "enough");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:999")), "enough");
  EXPECT_EQ(cluster.status("a"), "PENDING") << "one child is still ending";
  cluster.exit("a:0", 143);
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a")), "enough");
  EXPECT_EQ(cluster.counts("a"), "FAILED 1000");
  EXPECT_LT(cluster.find("a")->children_made, 1'000u) << "children that never ran have no rows";
}

TEST(Arrays, KillRunningAndStoppingChildren) {
  for (const bool stopping : {false, true}) {
    ArrayCluster cluster;
    ASSERT_TRUE(cluster.create(cluster.array_job("a", 6, 2)));
    if (stopping) {
      ASSERT_TRUE(cluster.cancel("a", Cancellation::terminated, "enough"));
      EXPECT_EQ(cluster.find("a:0")->state, JobState::stopping);
      EXPECT_GT(cluster.find("a:0")->stop_grace, Duration(0s));
    }
    ASSERT_TRUE(cluster.kill("a"));
    EXPECT_EQ(cluster.find("a:0")->state, JobState::stopping);
    EXPECT_EQ(cluster.find("a:0")->stop_grace, Duration(0s));
    EXPECT_EQ(batch::status_reason(*cluster.find("a:1")), stopping ? "enough" : "by hand");
  }
}

TEST(Arrays, LetRunningChildrenContinueWhenCancelledUntilTerminated) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 6, 2)));
  ASSERT_TRUE(cluster.create(cluster.array_job("b", 6, 2)));
  ASSERT_TRUE(cluster.cancel("a", Cancellation::cancelled, "no more"));
  EXPECT_EQ(cluster.find("a:0")->state, JobState::active);
  EXPECT_EQ(cluster.counts("a"), "STARTING 2, FAILED 4");
  cluster.exit("a:0", 0);
  EXPECT_EQ(cluster.status("a"), "PENDING");
  ASSERT_TRUE(cluster.cancel("a", Cancellation::terminated, "at once"));
  EXPECT_EQ(cluster.find("a:1")->state, JobState::stopping);
  cluster.exit("a:1", 143);
  EXPECT_EQ(cluster.counts("a"), "SUCCEEDED 1, FAILED 5");
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(cluster.counts("b"), "RUNNABLE 4, STARTING 2");
  ASSERT_TRUE(cluster.cancel("b:5", Cancellation::terminated, "only this one"));
  EXPECT_EQ(cluster.counts("b"), "RUNNABLE 3, STARTING 2, FAILED 1");
}

TEST(Arrays, DependOnWholeJobsAndAsAWhole) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("first")));
  CreateJob array = cluster.array_job("a", 2);
  array.spec.depends_on = {"first"};
  ASSERT_TRUE(cluster.create(array));
  ASSERT_TRUE(cluster.create(cluster.batch_job("last", 1, "q", {"a"})));
  ASSERT_TRUE(cluster.create(cluster.batch_job("early", 1, "q", {"a:0"})));
  EXPECT_EQ(cluster.status("a"), "PENDING");
  EXPECT_EQ(cluster.counts("a"), "PENDING 2");
  EXPECT_EQ(cluster.find("a")->wait_reason, "waits for 1 job that it depends on");
  cluster.exit("first", 0);
  EXPECT_EQ(cluster.counts("a"), "STARTING 2");
  cluster.exit("a:0", 0);
  EXPECT_EQ(cluster.status("early"), "STARTING");
  EXPECT_EQ(cluster.status("last"), "PENDING");
  cluster.exit("a:1", 0);
  EXPECT_EQ(cluster.status("last"), "STARTING");
}

TEST(Arrays, FailWithAllChildrenAfterAFailedDependency) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("first")));
  CreateJob array = cluster.array_job("a", 2);
  array.spec.depends_on = {"first"};
  ASSERT_TRUE(cluster.create(array));
  cluster.exit("first", 1);
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("a")), "Dependent Job failed");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:1")), "Dependent Job failed");
  EXPECT_EQ(cluster.counts("a"), "FAILED 2");
}

TEST(Arrays, RunSequentialChildrenOneAfterAnother) {
  ArrayCluster cluster;
  CreateJob array = cluster.array_job("a", 3);
  array.spec.array.sequential = true;
  ASSERT_TRUE(cluster.create(array));
  EXPECT_EQ(cluster.counts("a"), "PENDING 2, STARTING 1");
  cluster.exit("a:0", 0);
  EXPECT_EQ(cluster.status("a:1"), "STARTING");
  EXPECT_EQ(cluster.status("a:2"), "PENDING");
  cluster.restart();
  cluster.exit("a:1", 0);
  cluster.exit("a:2", 0);
  EXPECT_EQ(cluster.status("a"), "SUCCEEDED");
}

TEST(Arrays, FailTheRestAfterAFailedSequentialChild) {
  ArrayCluster cluster;
  CreateJob array = cluster.array_job("a", 2'000);
  array.spec.array.sequential = true;
  ASSERT_TRUE(cluster.create(array));
  EXPECT_LE(cluster.live_children("a"), reconcile::kChildrenAwaitingMax + 1);
  cluster.exit("a:0", 1);
  for (int iteration = 0; iteration < 10; ++iteration) cluster.run();
  EXPECT_EQ(cluster.counts("a"), "FAILED 2000");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:1999")), "Dependent Job failed");
  EXPECT_EQ(cluster.status("a"), "FAILED");
}

TEST(Arrays, WithNToNDependenciesStartEachChildAfterItsCounterpart) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 3)));
  CreateJob array = cluster.array_job("b", 3);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(cluster.create(array));
  EXPECT_EQ(cluster.counts("b"), "PENDING 3");
  cluster.exit("a:1", 0);
  EXPECT_EQ(cluster.status("b:1"), "STARTING");
  EXPECT_EQ(cluster.status("b:0"), "PENDING");
  cluster.exit("a:2", 9);
  EXPECT_EQ(cluster.status("b:2"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("b:2")), "Dependent Job failed");
  EXPECT_EQ(cluster.status("b:1"), "STARTING") << "a failed child fails only its counterpart";
  cluster.exit("a:0", 0);
  cluster.exit("b:0", 0);
  cluster.exit("b:1", 0);
  EXPECT_EQ(cluster.counts("b"), "SUCCEEDED 2, FAILED 1");
  EXPECT_EQ(cluster.status("b"), "FAILED");
}

TEST(Arrays, WithNToNDependenciesMayDependOnEndedArrays) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 300, 4)));
  cluster.exit("a:0", 0);
  ASSERT_TRUE(cluster.cancel("a", Cancellation::terminated, "enough"));
  cluster.exit("a:1", 143);
  ASSERT_EQ(cluster.status("a"), "FAILED");
  CreateJob array = cluster.array_job("b", 300);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(cluster.create(array));
  for (int iteration = 0; iteration < 4; ++iteration) cluster.run();
  EXPECT_EQ(cluster.counts("b"), "STARTING 1, FAILED 299");
}

TEST(Arrays, ShowWhyTheyCreateNoChildrenYet) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("first")));
  CreateJob a = cluster.array_job("a", 3);
  a.spec.depends_on = {"first"};
  ASSERT_TRUE(cluster.create(a));
  CreateJob b = cluster.array_job("b", 3);
  b.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(cluster.create(b));
  EXPECT_EQ(cluster.find("a")->wait_reason, "waits for 1 job that it depends on");
  EXPECT_EQ(cluster.find("b")->wait_reason,
            "waits for the children of job/mnist (a) that its own depend on");
  EXPECT_TRUE(cluster.control->queue_heads()->queues.empty()) << "neither is ready to run";
  cluster.exit("first", 0);
  EXPECT_EQ(cluster.find("b")->children_made, 3u);
  EXPECT_EQ(cluster.find("b")->wait_reason, "");
}

// The first child of the other array runs for long; the others continue, and so do their
// counterparts.
TEST(Arrays, CreateNoChildBeforeItsCounterpart) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 5'000, 4)));
  CreateJob array = cluster.array_job("b", 5'000, 4);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(cluster.create(array));
  EXPECT_EQ(cluster.find("b")->children_made, cluster.find("a")->children_made);
  EXPECT_EQ(cluster.find("b")->children_made, reconcile::kChildrenWaitingMax + 1);
}

TEST(Arrays, RejectNToNDependenciesOnOtherSizes) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 3)));
  ASSERT_TRUE(cluster.create(cluster.batch_job("one")));
  const auto refusal = [&](const std::string& on) {
    CreateJob array = cluster.array_job("b", 4);
    array.spec.depends_on_alike = {on};
    return cluster.create(array).error().message;
  };
  EXPECT_EQ(refusal("a"),
            "an N_TO_N dependency is on an array job of the same size, here 4, and the job a has 3 "
            "children");
  EXPECT_EQ(refusal("one"),
            "an N_TO_N dependency is on an array job of the same size, here 4, and the job one is "
            "not an array");
  EXPECT_EQ(refusal("a:0"),
            "an N_TO_N dependency is on an array job of the same size, here 4, and the job a:0 is "
            "not an array");
  EXPECT_EQ(refusal("nobody"), "the job nobody that it depends on does not exist");
}

TEST(Arrays, EndWhenTheirQueueIsDeleted) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 300, 4)));
  auto queue = cluster.queue_of("q", {"box"}, 1);
  queue.enabled = false;
  ASSERT_TRUE(cluster.change(ResourceChange::update, queue));
  ASSERT_TRUE(cluster.change(ResourceChange::remove, queue));
  cluster.exit("a:0", 143);
  EXPECT_EQ(cluster.counts("a"), "FAILED 300");
  EXPECT_EQ(batch::status_reason(*cluster.find("a:299")), "the job queue q was deleted");
}

TEST(Arrays, RejectInterruptions) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 2)));
  Result<domain::Job> result = internal("not answered");
  cluster.control->interrupt_job({"us-east-1", "a"}, {},
                                 [&](auto answer) { result = std::move(answer); });
  cluster.run();
  EXPECT_EQ(result.error().kind, Kind::conflict);
}

TEST(Arrays, AreRebuiltByAReplayOfTheLedger) {
  ArrayCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.array_job("a", 300, 2)));
  ASSERT_TRUE(cluster.cancel("a:298", Cancellation::cancelled, "not this one"));
  cluster.exit("a:0", 0);
  cluster.exit("a:1", 3);
  CreateJob array = cluster.array_job("b", 300);
  array.spec.depends_on_alike = {"a"};
  array.spec.array.sequential = true;
  ASSERT_TRUE(cluster.create(array));
  ASSERT_TRUE(cluster.cancel("a", Cancellation::terminated, "enough"));
  cluster.exit("a:2", 143);
  for (int iteration = 0; iteration < 4; ++iteration) cluster.run();
  test::Replay replay;
  const auto replayed = replay.run(*cluster.ledger);
  ASSERT_TRUE(replayed) << replayed.error().message;
  size_t children = 0;
  for (const auto& [number, job] : replay.jobs) {
    const auto kept = cluster.ledger->find_job(number);
    ASSERT_TRUE(kept) << number;
    EXPECT_EQ(dump(to_json(job), 1), dump(to_json(*kept), 1));
    children += job.parent != 0;
  }
  EXPECT_EQ(children, cluster.ledger->count_children(cluster.find("a")->number)->all() +
                          cluster.ledger->count_children(cluster.find("b")->number)->all());
}

}  // namespace
}  // namespace trainyard::control

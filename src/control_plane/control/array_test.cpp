// Tests arrays: their children are created few at a time, depend on each other, fail, and are
// withdrawn one by one or all together.
#include "domain/array.hpp"
#include "batch/catalog.hpp"
#include "batch/status.hpp"
#include "control/test_batch.hpp"
#include "domain/stage.hpp"
#include "reconcile/reconcile.hpp"

namespace trainyard::control {
namespace {

using batch::ResourceChange;
using domain::JobState;
using domain::Stage;
using domain::Withdrawn;
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
  // Every child that is placed ends with that exit code, until nothing is placed any more.
  void run_all(const std::string& id, int code = 0) {
    for (int round = 0; round < 1'000; ++round) {
      std::vector<std::string> running;
      const auto children = control->children(*find(id), {.children_max = 1'000});
      for (const auto& child : *children)
        if (child.state == JobState::active) running.push_back(child.key.name);
      if (running.empty()) return;
      for (const std::string& child : running) exit(child, code);
    }
    FAIL() << "it does not come to an end";
  }
};

TEST(Arrays, ChildrenRunAndTheArrayEndsWithTheLast) {
  ArrayCluster yard;
  const auto made = yard.create(yard.array_job("a", 3, 2));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(yard.status("a"), "PENDING");
  EXPECT_TRUE(yard.find("a")->attempts.empty()) << "an array is never placed";
  EXPECT_EQ(yard.counts("a"), "RUNNABLE 1, STARTING 2") << "the environment has 4 vCPU";
  EXPECT_EQ(yard.find("a:1")->number, made->number + 2);
  EXPECT_NE(yard.find("a:2")->wait_reason, "");
  yard.exit("a:0", 0);
  EXPECT_EQ(yard.status("a:2"), "STARTING");
  yard.exit("a:1", 0);
  yard.exit("a:2", 0);
  EXPECT_EQ(yard.status("a"), "SUCCEEDED");
  EXPECT_EQ(yard.counts("a"), "SUCCEEDED 3");
  EXPECT_EQ(yard.ledger->live_jobs()->size(), 0u);
}

TEST(Arrays, OneChildThatFailsFailsTheArrayOnceAllAreOver) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 3)));
  yard.exit("a:1", 7);
  EXPECT_EQ(yard.status("a:1"), "FAILED");
  EXPECT_EQ(yard.status("a"), "PENDING");
  yard.exit("a:0", 0);
  yard.exit("a:2", 0);
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a")), "Array Child Job failed");
  EXPECT_EQ(yard.counts("a"), "SUCCEEDED 2, FAILED 1");
}

TEST(Arrays, EachChildIsTriedAgainByItself) {
  ArrayCluster yard;
  CreateJob job = yard.array_job("a", 2);
  job.spec.retry.attempts_max = 2;
  ASSERT_TRUE(yard.create(job));
  yard.exit("a:0", 7);
  EXPECT_EQ(yard.find("a:0")->attempts.size(), 2u);
  EXPECT_EQ(yard.find("a:1")->attempts.size(), 1u);
  yard.exit("a:0", 0);
  yard.exit("a:1", 0);
  EXPECT_EQ(yard.status("a"), "SUCCEEDED");
}

// Ten thousand children are one row and one command at first, and no more than a window of them
// wait in memory.
TEST(Arrays, ChildrenAreMadeFewAtATime) {
  ArrayCluster yard;
  const uint64_t commands = yard.ledger->last_sequence();
  Result<domain::Job> made = internal("not answered");
  yard.control->create_job(yard.array_job("a", 10'000),
                           [&](auto answer) { made = std::move(answer); });
  yard.control->commit_step();
  ASSERT_TRUE(made);
  EXPECT_EQ(yard.ledger->last_sequence(), commands + 1);
  EXPECT_EQ(yard.ledger->last_job_number(), made->number + 10'000);
  EXPECT_EQ(yard.live_children("a"), 0u);
  EXPECT_EQ(yard.status("a"), "SUBMITTED");
  EXPECT_EQ(yard.counts("a"), "RUNNABLE 10000");
  yard.run();
  EXPECT_EQ(yard.counts("a"), "RUNNABLE 9996, STARTING 4");
  EXPECT_EQ(yard.live_children("a"), reconcile::kChildrenWaitingMax + 4);
  EXPECT_LT(yard.ledger->last_sequence(), commands + 20) << "one record makes many";
  const auto next = yard.create(yard.batch_job("b"));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number, made->number + 10'001);
}

TEST(Arrays, AChildThatWasNotMadeYetIsShownFromItsArray) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 10'000)));
  const auto child = yard.find("a:9999");
  EXPECT_EQ(child->number, yard.find("a")->number + 10'000);
  EXPECT_EQ(stage_of(*child), Stage::runnable);
  EXPECT_EQ((*yard.control->find(child->number))->key.name, "a:9999");
  for (const char* nobody : {"a:10000", "a:-1", "a:x", "b:0", "a:0:0"})
    EXPECT_EQ(yard.control->find(domain::JobKey{"us-east-1", nobody}).error().kind, Kind::not_found)
        << nobody;
}

TEST(Arrays, ListsOfChildrenGoThroughAllOnce) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 300, 2)));
  ASSERT_TRUE(yard.withdraw("a:290", Withdrawn::cancelled, "not this one"));
  yard.exit("a:0", 0);
  const auto indices = [&](std::optional<Stage> status, size_t page_size) {
    std::vector<uint32_t> all;
    ledger::ChildQuery query;
    query.stage = status;
    query.children_max = page_size;
    for (int pages = 0; pages < 100; ++pages) {
      const auto page = yard.control->children(*yard.find("a"), query);
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

TEST(Arrays, OneChildIsTakenBackBeforeItsTurn) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 300, 4)));
  EXPECT_EQ(yard.live_children("a"), 257u);
  ASSERT_TRUE(yard.withdraw("a:299", Withdrawn::cancelled, "not this one"));
  EXPECT_TRUE(yard.withdraw("a:299", Withdrawn::terminated, "again"))
      << "it is over, and that is no error";
  EXPECT_EQ(yard.status("a:299"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a:299")), "not this one");
  EXPECT_EQ(yard.live_children("a"), 257u) << "it was made, and was over";
  EXPECT_EQ(yard.counts("a"), "RUNNABLE 298, STARTING 1, FAILED 1");
  yard.restart();
  yard.run_all("a");
  EXPECT_EQ(yard.counts("a"), "SUCCEEDED 299, FAILED 1");
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a:299")), "not this one");
}

TEST(Arrays, TerminateHitsAllChildrenMadeOrNot) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 1'000, 4)));
  ASSERT_TRUE(yard.withdraw("a", Withdrawn::terminated, "enough"));
  EXPECT_EQ(yard.find("a:0")->state, JobState::stopping);
  EXPECT_EQ(yard.status("a:1"), "FAILED");
  EXPECT_EQ(yard.status("a:999"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a:1")), "enough");
  EXPECT_EQ(batch::status_reason(*yard.find("a:999")), "enough");
  EXPECT_EQ(yard.status("a"), "PENDING") << "one is ending";
  yard.exit("a:0", 143);
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a")), "enough");
  EXPECT_EQ(yard.counts("a"), "FAILED 1000");
  EXPECT_LT(yard.find("a")->children_made, 1'000u) << "nobody needs rows of what never ran";
}

TEST(Arrays, CancelLeavesWhatRunsAndTerminateMayFollow) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 6, 2)));
  ASSERT_TRUE(yard.create(yard.array_job("b", 6, 2)));
  ASSERT_TRUE(yard.withdraw("a", Withdrawn::cancelled, "no more"));
  EXPECT_EQ(yard.find("a:0")->state, JobState::active);
  EXPECT_EQ(yard.counts("a"), "STARTING 2, FAILED 4");
  yard.exit("a:0", 0);
  EXPECT_EQ(yard.status("a"), "PENDING");
  ASSERT_TRUE(yard.withdraw("a", Withdrawn::terminated, "at once"));
  EXPECT_EQ(yard.find("a:1")->state, JobState::stopping);
  yard.exit("a:1", 143);
  EXPECT_EQ(yard.counts("a"), "SUCCEEDED 1, FAILED 5");
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(yard.counts("b"), "RUNNABLE 4, STARTING 2");
  ASSERT_TRUE(yard.withdraw("b:5", Withdrawn::terminated, "only this one"));
  EXPECT_EQ(yard.counts("b"), "RUNNABLE 3, STARTING 2, FAILED 1");
}

TEST(Arrays, AnArrayAwaitsWholeJobsAndIsAwaitedWhole) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("first")));
  CreateJob array = yard.array_job("a", 2);
  array.spec.depends_on = {"first"};
  ASSERT_TRUE(yard.create(array));
  ASSERT_TRUE(yard.create(yard.batch_job("last", 1, "q", {"a"})));
  ASSERT_TRUE(yard.create(yard.batch_job("early", 1, "q", {"a:0"})));
  EXPECT_EQ(yard.status("a"), "PENDING");
  EXPECT_EQ(yard.counts("a"), "PENDING 2");
  EXPECT_EQ(yard.find("a")->wait_reason, "waits for 1 job that it depends on");
  yard.exit("first", 0);
  EXPECT_EQ(yard.counts("a"), "STARTING 2");
  yard.exit("a:0", 0);
  EXPECT_EQ(yard.status("early"), "STARTING");
  EXPECT_EQ(yard.status("last"), "PENDING");
  yard.exit("a:1", 0);
  EXPECT_EQ(yard.status("last"), "STARTING");
}

TEST(Arrays, AnArrayWhoseDependencyFailsFailsWithAllItsChildren) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("first")));
  CreateJob array = yard.array_job("a", 2);
  array.spec.depends_on = {"first"};
  ASSERT_TRUE(yard.create(array));
  yard.exit("first", 1);
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("a")), "Dependent Job failed");
  EXPECT_EQ(batch::status_reason(*yard.find("a:1")), "Dependent Job failed");
  EXPECT_EQ(yard.counts("a"), "FAILED 2");
}

TEST(Arrays, SequentialChildrenRunOneAfterAnother) {
  ArrayCluster yard;
  CreateJob array = yard.array_job("a", 3);
  array.spec.array.sequential = true;
  ASSERT_TRUE(yard.create(array));
  EXPECT_EQ(yard.counts("a"), "PENDING 2, STARTING 1");
  yard.exit("a:0", 0);
  EXPECT_EQ(yard.status("a:1"), "STARTING");
  EXPECT_EQ(yard.status("a:2"), "PENDING");
  yard.restart();
  yard.exit("a:1", 0);
  yard.exit("a:2", 0);
  EXPECT_EQ(yard.status("a"), "SUCCEEDED");
}

TEST(Arrays, OfASequenceTheRestFailsWithTheFirstThatDoes) {
  ArrayCluster yard;
  CreateJob array = yard.array_job("a", 2'000);
  array.spec.array.sequential = true;
  ASSERT_TRUE(yard.create(array));
  EXPECT_LE(yard.live_children("a"), reconcile::kChildrenAwaitingMax + 1);
  yard.exit("a:0", 1);
  for (int turn = 0; turn < 10; ++turn) yard.run();
  EXPECT_EQ(yard.counts("a"), "FAILED 2000");
  EXPECT_EQ(batch::status_reason(*yard.find("a:1999")), "Dependent Job failed");
  EXPECT_EQ(yard.status("a"), "FAILED");
}

TEST(Arrays, ChildByChildEachAwaitsItsOwn) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 3)));
  CreateJob array = yard.array_job("b", 3);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(yard.create(array));
  EXPECT_EQ(yard.counts("b"), "PENDING 3");
  yard.exit("a:1", 0);
  EXPECT_EQ(yard.status("b:1"), "STARTING");
  EXPECT_EQ(yard.status("b:0"), "PENDING");
  yard.exit("a:2", 9);
  EXPECT_EQ(yard.status("b:2"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("b:2")), "Dependent Job failed");
  EXPECT_EQ(yard.status("b:1"), "STARTING") << "one that fails fails its own counterpart only";
  yard.exit("a:0", 0);
  yard.exit("b:0", 0);
  yard.exit("b:1", 0);
  EXPECT_EQ(yard.counts("b"), "SUCCEEDED 2, FAILED 1");
  EXPECT_EQ(yard.status("b"), "FAILED");
}

TEST(Arrays, ChildByChildWorksOnArraysThatAreOver) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 300, 4)));
  yard.exit("a:0", 0);
  ASSERT_TRUE(yard.withdraw("a", Withdrawn::terminated, "enough"));
  yard.exit("a:1", 143);
  ASSERT_EQ(yard.status("a"), "FAILED");
  CreateJob array = yard.array_job("b", 300);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(yard.create(array));
  for (int turn = 0; turn < 4; ++turn) yard.run();
  EXPECT_EQ(yard.counts("b"), "STARTING 1, FAILED 299");
}

TEST(Arrays, AnArrayThatMakesNoChildrenYetSaysWhy) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("first")));
  CreateJob a = yard.array_job("a", 3);
  a.spec.depends_on = {"first"};
  ASSERT_TRUE(yard.create(a));
  CreateJob b = yard.array_job("b", 3);
  b.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(yard.create(b));
  EXPECT_EQ(yard.find("a")->wait_reason, "waits for 1 job that it depends on");
  EXPECT_EQ(yard.find("b")->wait_reason,
            "waits for the children of job/mnist (a) that its own depend on");
  EXPECT_TRUE(yard.control->queue_heads()->queues.empty()) << "neither is ready to run";
  yard.exit("first", 0);
  EXPECT_EQ(yard.find("b")->children_made, 3u);
  EXPECT_EQ(yard.find("b")->wait_reason, "");
}

// The first of those that are awaited runs for long: the others go on, and their counterparts with
// them.
TEST(Arrays, NoChildIsMadeBeforeThoseThatItAwaits) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 5'000, 4)));
  CreateJob array = yard.array_job("b", 5'000, 4);
  array.spec.depends_on_alike = {"a"};
  ASSERT_TRUE(yard.create(array));
  EXPECT_EQ(yard.find("b")->children_made, yard.find("a")->children_made);
  EXPECT_EQ(yard.find("b")->children_made, reconcile::kChildrenWaitingMax + 1);
}

TEST(Arrays, OnlyAnArrayOfTheSameSizeIsAwaitedChildByChild) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 3)));
  ASSERT_TRUE(yard.create(yard.batch_job("one")));
  const auto refusal = [&](const std::string& on) {
    CreateJob array = yard.array_job("b", 4);
    array.spec.depends_on_alike = {on};
    return yard.create(array).error().message;
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

TEST(Arrays, AQueueThatIsDeletedEndsThem) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 300, 4)));
  auto queue = yard.queue_of("q", {"box"}, 1);
  queue.enabled = false;
  ASSERT_TRUE(yard.change(ResourceChange::update, queue));
  ASSERT_TRUE(yard.change(ResourceChange::remove, queue));
  yard.exit("a:0", 143);
  EXPECT_EQ(yard.counts("a"), "FAILED 300");
  EXPECT_EQ(batch::status_reason(*yard.find("a:299")), "the job queue q was deleted");
}

TEST(Arrays, AnArrayIsNotInterruptedAsOne) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 2)));
  Result<domain::Job> result = internal("not answered");
  yard.control->interrupt_job({"us-east-1", "a"}, {},
                              [&](auto answer) { result = std::move(answer); });
  yard.run();
  EXPECT_EQ(result.error().kind, Kind::conflict);
}

// As the ledger keeps them: what arrays have brought.
TEST(Arrays, ReplayRebuildsTheTables) {
  ArrayCluster yard;
  ASSERT_TRUE(yard.create(yard.array_job("a", 300, 2)));
  ASSERT_TRUE(yard.withdraw("a:298", Withdrawn::cancelled, "not this one"));
  yard.exit("a:0", 0);
  yard.exit("a:1", 3);
  CreateJob array = yard.array_job("b", 300);
  array.spec.depends_on_alike = {"a"};
  array.spec.array.sequential = true;
  ASSERT_TRUE(yard.create(array));
  ASSERT_TRUE(yard.withdraw("a", Withdrawn::terminated, "enough"));
  yard.exit("a:2", 143);
  for (int turn = 0; turn < 4; ++turn) yard.run();
  test::Replay replay;
  const auto replayed = replay.run(*yard.ledger);
  ASSERT_TRUE(replayed) << replayed.error().message;
  size_t children = 0;
  for (const auto& [number, job] : replay.jobs) {
    const auto kept = yard.ledger->find_job(number);
    ASSERT_TRUE(kept) << number;
    EXPECT_EQ(dump(to_json(job), 1), dump(to_json(*kept), 1));
    children += job.parent != 0;
  }
  EXPECT_EQ(children, yard.ledger->count_children(yard.find("a")->number)->all() +
                          yard.ledger->count_children(yard.find("b")->number)->all());
}

}  // namespace
}  // namespace trainyard::control

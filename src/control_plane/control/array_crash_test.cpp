// Tests arrays that depend on each other, with a server that crashes between any two of its steps:
// nothing is lost, no child runs twice or before its dependencies have ended, and replaying the
// ledger's commands gives its tables.
#include <set>

#include "base/random.hpp"
#include "control/testing/test_batch.hpp"
#include "domain/array.hpp"
#include "domain/stage.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::Cancellation;
using domain::HostState;
using domain::JobNumber;
using domain::JobState;
using domain::Stage;
using test::BatchCluster;

class ArrayScenario {
 public:
  explicit ArrayScenario(uint64_t seed) : random_(seed) {}

  void run() {
    constexpr int kStepsMax = 600;
    for (int step = 0; step < kStepsMax; ++step) {
      record_started_attempts();
      switch (random_.below(10)) {
        case 0:
          submit();
          break;
        case 1:
          if (random_.chance(3)) cancel();
          break;
        case 2:
          // Uncommitted commands are lost, with their callers.
          if (random_.chance(3)) cluster_.restart();
          break;
        case 3:
        case 4:
        case 5:
          cluster_.control->commit_step();
          break;
        case 6:
          cluster_.clock.advance(Duration(int64_t(random_.below(2'000))));
          cluster_.control->reconcile_step();
          break;
        default:
          advance_host();
      }
    }
    while (requests_ < kRequestsMax) submit();
    run_to_completion();
  }

  void check() {
    EXPECT_EQ(cluster_.launcher.starts, int(started_attempts_.size()))
        << "an attempt was started twice";
    for (const std::string& id : arrays_) check_array(*cluster_.find(id));
    test::Replay replay;
    const auto replayed = replay.run(*cluster_.ledger);
    ASSERT_TRUE(replayed) << replayed.error().message;
    for (const auto& [number, job] : replay.jobs) {
      const auto kept = cluster_.ledger->find_job(number);
      ASSERT_TRUE(kept) << number;
      ASSERT_EQ(dump(to_json(job)), dump(to_json(*kept)));
    }
  }

 private:
  static constexpr size_t kRequestsMax = 5;

  void submit() {
    if (requests_ == kRequestsMax) return;
    const std::string id = "array-" + std::to_string(++requests_);
    CreateJob requested = BatchCluster::batch_job(id);
    requested.spec.array.size =
        random_.chance(6) ? 300 : uint32_t(2 + random_.below(2) * random_.below(9));
    requested.spec.retry.attempts_max = uint32_t(1 + random_.below(2));
    requested.spec.array.sequential = random_.chance(3);
    for (const std::string& other : arrays_) {
      if (random_.chance(4))
        requested.spec.depends_on.push_back(other + (random_.chance(2) ? ":1" : ""));
      if (cluster_.find(other)->spec.array.size == requested.spec.array.size)
        requested.spec.depends_on_alike.push_back(other);
    }
    bool made = false;
    cluster_.control->create_job(requested, [&](const auto& answer) { made = bool(answer); });
    cluster_.control->commit_step();
    ASSERT_TRUE(made);
    arrays_.push_back(id);
  }

  void cancel() {
    if (arrays_.empty()) return;
    std::string id = arrays_[random_.below(arrays_.size())];
    if (!random_.chance(4))
      id += ":" + std::to_string(random_.below(cluster_.find(id)->spec.array.size));
    const Cancellation how = random_.chance(2) ? Cancellation::cancelled : Cancellation::terminated;
    cluster_.control->cancel_job({test::kRegion, id}, how, "by hand", [](const auto&) {});
  }

  // Records the attempts that the launcher runs now as started.
  void record_started_attempts() {
    for (const launch::Agent& agent : cluster_.launcher.agents)
      started_attempts_.insert(agent.attempt);
  }

  // Advances the process of one host by one state.
  void advance_host() {
    if (!cluster_.launcher.agents.empty())
      advance_host(cluster_.launcher.agents[random_.below(cluster_.launcher.agents.size())]);
  }

  void advance_host(launch::Agent agent) {
    const auto job = *cluster_.control->find(agent.attempt.job);
    if (!agent.alive || !job->attempt() || job->attempt()->number != agent.attempt.number) return;
    const domain::Host& host = job->attempt()->hosts[0];
    wire::StateFact fact;
    fact.number = host.facts_applied + 1;
    fact.at = cluster_.clock.now();
    if (host.state < HostState::running) {
      fact.state = HostState::running;
    } else if (host.state == HostState::running) {
      fact.state = HostState::draining;
      fact.exit_code = job->state == JobState::stopping ? 143 : random_.chance(8) ? 3 : 0;
      if (*fact.exit_code != 0) fact.fault = domain::Fault::algorithm;
    } else if (host.state < HostState::finished) {
      fact.state = HostState(int(host.state) + 1);
    } else {
      return cluster_.launcher.kill(agent.attempt, 0);  // it has reported everything, and exits
    }
    cluster_.control->report(agent.attempt, 0, fact, [](const auto&) {});
  }

  void run_to_completion() {
    constexpr int kRoundsMax = 5'000;
    for (int round = 0; round < kRoundsMax; ++round) {
      if (cluster_.ledger->live_jobs()->empty()) return;
      cluster_.clock.advance(1s);
      cluster_.control->reconcile_step();
      cluster_.control->commit_step();
      record_started_attempts();
      for (const launch::Agent& agent : std::vector(cluster_.launcher.agents)) advance_host(agent);
      cluster_.control->commit_step();
    }
    FAIL() << "jobs are still live after " << kRoundsMax << " rounds";
  }

  void check_array(const domain::Job& array) {
    const auto counts = cluster_.control->count_children(array);
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->all(), array.spec.array.size);
    EXPECT_EQ(counts->in(Stage::succeeded) + counts->in(Stage::failed), counts->all());
    EXPECT_EQ(array.state == JobState::completed, counts->in(Stage::failed) == 0) << array.key.name;
    const auto children = cluster_.control->children(array, {.children_max = 1'000});
    ASSERT_TRUE(children);
    ASSERT_EQ(children->size(), array.spec.array.size);
    for (const domain::Job& child : *children) check_child(array, child);
  }

  void check_child(const domain::Job& array, const domain::Job& child) {
    ASSERT_TRUE(child.finished()) << child.key.name;
    EXPECT_LE(child.attempts.size(), child.spec.retry.attempts_max);
    size_t successes = 0;
    for (const domain::Attempt& attempt : child.attempts) {
      // A child that was stopped before its gang was started has not run.
      EXPECT_TRUE(!attempt.training_started ||
                  started_attempts_.contains({child.number, attempt.number}))
          << child.key.name << " never ran";
      successes += attempt.exit_code == 0;
    }
    EXPECT_LE(successes, 1u) << child.key.name << " was retried after it had succeeded";
    // A stopped child may have succeeded at the same time.
    if (!child.stop_requested || child.state == JobState::completed) {
      EXPECT_EQ(successes, size_t(child.state == JobState::completed)) << child.key.name;
    }
    if (child.attempts.empty()) return;
    const Instant began = child.attempts.front().started;
    const auto after = [&](const domain::Job& other) {
      EXPECT_EQ(other.state, JobState::completed)
          << child.key.name << " began without " << other.key.name;
      EXPECT_LE(other.modified, began)
          << child.key.name << " began before " << other.key.name << " ended";
    };
    for (const std::string& id : array.spec.depends_on) after(*cluster_.find(id));
    const uint32_t index = array_index(child);
    if (array.spec.array.sequential && index > 0)
      after(*cluster_.find(array.key.name + ":" + std::to_string(index - 1)));
    for (const std::string& id : array.spec.depends_on_alike)
      after(*cluster_.find(id + ":" + std::to_string(index)));
  }

  SeededRandom random_;
  BatchCluster cluster_;
  size_t requests_ = 0;
  std::vector<std::string> arrays_;
  std::set<AttemptId> started_attempts_;
};

TEST(ArrayCrash, LosesNothingAndRunsNothingTwiceAtAnyStep) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ArrayScenario scenario(seed);
    scenario.run();
    scenario.check();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace trainyard::control

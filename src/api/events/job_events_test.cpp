#include "events/job_events.hpp"

#include <gtest/gtest.h>

#include "notify/testing/notify_world.hpp"
#include "operations/testing/fake_control.hpp"

namespace trainyard::api::events {
namespace {

using domain::Job;
using domain::Phase;

constexpr const char* kRequest = R"({
  "TrainingJobName": "mnist-1", "RoleArn": "arn:aws:iam::123456789012:role/trainer",
  "AlgorithmSpecification": {"TrainingImage": "trainyard/host", "TrainingInputMode": "File"},
  "OutputDataConfig": {"S3OutputPath": "s3://yard/models"},
  "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
  "StoppingCondition": {"MaxRuntimeInSeconds": 60}, "Environment": {"PASSWORD": "secret"}})";

struct JobEventsTest : ::testing::Test, notify::NotifyWorld {
  in_memory::PlainControl control{clock};
  std::unique_ptr<JobEvents> job_events;

  JobEventsTest() {
    EXPECT_TRUE(open());
    topic();
    subscribe("https://u.example/", [](notify::Subscription& each) { each.raw = true; });
    notify::Rule rule;
    rule.arn = bus->rule_arn("eu-west-1", "all");
    rule.pattern = R"({"source": [{"prefix": "aws."}]})";
    rule.targets = {{.id = "1", .arn = kTopic}};
    EXPECT_TRUE(all->change([&](notify::Catalogue& next) -> Result<notify::StoreChange> {
      return notify::StoreChange{{TRY(next.put(rule))}};
    }));
    restart_events();
    step();  // existing jobs count as announced
  }

  void restart_events() {
    job_events =
        std::make_unique<JobEvents>(*bus, control, std::vector<std::string>{"eu-west-1"}, clock);
    EXPECT_TRUE(job_events->open());
  }
  void step() {
    const auto stepped = job_events->step();
    EXPECT_TRUE(stepped) << (stepped ? "" : stepped.error().message);
  }
  // Simulates a kill: only the ledger has the changes that were not announced.
  void kill() {
    job_events.reset();
    EXPECT_TRUE(reopen());
    restart_events();
  }

  std::shared_ptr<const Job> put(Job job) {
    auto made = std::make_shared<const Job>(std::move(job));
    control.jobs[made->key] = made;
    return made;
  }
  Job training_job(std::vector<Phase> phases) {
    Job job;
    job.number = 1;
    job.key = {"eu-west-1", "mnist-1"};
    job.account = "123456789012";
    job.spec.request = *parse_json(kRequest);
    job.spec.groups = {{.name = "homogeneousCluster", .instance_type = "ml.m5.large"}};
    job.created = job.modified = clock.now();
    for (const Phase phase : phases) job.transitions.push_back({phase, "", clock.now(), {}});
    if (!phases.empty() && phases.back() == Phase::completed)
      job.state = domain::JobState::completed;
    return job;
  }
  // Returns "Status SecondaryStatus" of the events delivered since the last call.
  std::vector<std::string> delivered() {
    sent.clear();
    all->deliverer().attempt_due();
    std::vector<std::string> found;
    for (const auto& each : sent) {
      const Json event = *parse_json(each.body);
      EXPECT_EQ(event["resources"],
                Json::array({"arn:aws:sagemaker:eu-west-1:123456789012:training-job/mnist-1"}));
      found.push_back(event["detail"]["TrainingJobStatus"].get<std::string>() + " " +
                      event["detail"]["SecondaryStatus"].get<std::string>());
    }
    std::ranges::sort(found);
    return found;
  }
};
using Texts = std::vector<std::string>;

TEST_F(JobEventsTest, SetsAsideRecordsThatCannotBeRead) {
  notify::StoreChange change;
  change.documents.push_back({"job", "not a number", Json::object()});
  change.documents.push_back({"job", "7", Json::object()});
  change.documents.push_back({"position", "jobs", Json::object()});
  ASSERT_TRUE(all->store(change));
  kill();
  step();
}

TEST_F(JobEventsTest, AnnounceEachPhaseOnce) {
  job_events->add_change(put(training_job({Phase::starting})));
  step();
  EXPECT_EQ(delivered(), Texts{"InProgress Starting"});
  const auto job = put(training_job({Phase::starting, Phase::training, Phase::completed}));
  job_events->add_change(job);
  job_events->add_change(job);
  step();
  EXPECT_EQ(delivered(), (Texts{"Completed Completed", "InProgress Training"}));
  step();
  EXPECT_EQ(delivered(), Texts{});
}

TEST_F(JobEventsTest, AnnounceMissedPhasesAfterAKill) {
  job_events->add_change(put(training_job({Phase::starting})));
  step();
  EXPECT_EQ(delivered(), Texts{"InProgress Starting"});
  // Committed to the ledger, and killed before the event.
  clock.advance(1s);
  Job job = training_job({Phase::starting, Phase::downloading, Phase::training});
  put(job);
  kill();
  step();
  EXPECT_EQ(delivered(), (Texts{"InProgress Downloading", "InProgress Training"}));
  kill();
  step();
  EXPECT_EQ(delivered(), Texts{}) << "what was announced is stored with its deliveries";
  // A job that has ended meanwhile is listed by the ledger.
  job = training_job({Phase::starting, Phase::downloading, Phase::training, Phase::completed});
  control.jobs.clear();
  control.page.jobs = {job};
  kill();
  step();
  EXPECT_EQ(delivered(), Texts{"Completed Completed"});
  EXPECT_EQ(control.queries.back().region, "eu-west-1");
  kill();
  step();
  EXPECT_EQ(delivered(), Texts{});
}

TEST_F(JobEventsTest, LeaveOutSecretsAndUseMilliseconds) {
  const auto events = due_events(training_job({Phase::starting}), Announced{}, clock.now());
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), 1u);
  const Json& detail = events->front().detail;
  EXPECT_EQ(dump(detail).find("secret"), std::string::npos);
  EXPECT_EQ(detail["CreationTime"], to_milliseconds(clock.now()));
  EXPECT_EQ(detail["SecondaryStatusTransitions"][0]["StartTime"], to_milliseconds(clock.now()));
  EXPECT_EQ(events->front().source, "aws.sagemaker");
}

TEST_F(JobEventsTest, ForgetJobsThatEndedLongAgo) {
  job_events->add_change(put(training_job({Phase::completed})));
  step();
  EXPECT_EQ(delivered().size(), 1u);
  const auto marks = [&] {
    size_t count = 0;
    const auto documents = all->documents();
    EXPECT_TRUE(documents);
    for (const auto& each : *documents) count += each.kind == "job";
    return count;
  };
  EXPECT_EQ(marks(), 1u);
  control.jobs.clear();
  clock.advance(3h);
  Job other = training_job({Phase::starting});
  other.number = 2;
  job_events->add_change(std::make_shared<const Job>(other));
  step();
  EXPECT_EQ(marks(), 1u);
}

TEST_F(JobEventsTest, AnnounceAFaultOfARank) {
  const auto job = put(training_job({Phase::training}));
  job_events->add_change(job);
  step();
  diagnosis::FaultNews news{{.kind = diagnosis::FaultKind::stuck_rank,
                             .host = 1,
                             .rank = 3,
                             .text = "rank 3 on algo-2 seems to be stuck"},
                            true,
                            {}};
  job_events->add_fault(job->key, news);
  news.begins = false;
  news.lasted = 30s;
  job_events->add_fault(job->key, news);
  job_events->add_fault({"eu-west-1", "unknown"}, news);  // a job that does not exist
  const uint64_t before = bus->position();
  (void)bus->follow(before, "eu-west-1", 1);  // a client wants events
  step();
  const auto events = bus->follow(before, "eu-west-1", 10).events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ((*events[0])["source"], "trainyard");
  EXPECT_EQ((*events[0])["detail-type"], "Training Job Rank Fault");
  EXPECT_EQ((*events[0])["detail"], Json({{"JobName", "mnist-1"},
                                          {"Fault", "StuckRank"},
                                          {"State", "Begun"},
                                          {"Host", "algo-2"},
                                          {"Rank", 3},
                                          {"Message", "rank 3 on algo-2 seems to be stuck"}}));
  EXPECT_EQ((*events[1])["detail"]["State"], "Ended");
  EXPECT_EQ((*events[1])["detail"]["Seconds"], 30);
}

}  // namespace
}  // namespace trainyard::api::events

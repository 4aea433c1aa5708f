#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "domain/tracing/trace_context.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

// `mnist-1` runs since 60 s, and writes to s3://models/team/mnist-1/.
struct TimelineWorld : OperationsWorld, ::testing::Test {
  TimelineWorld() : OperationsWorld(trainyard_api::add_timelines) {
    context.principal.kind = PrincipalKind::owner;
    job.number = 1;
    job.key = {"eu-west-1", "mnist-1"};
    job.account = "123456789012";
    job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
    job.spec.output_uri = "s3://models/team/";
    job.state = domain::JobState::active;
    job.created = in_memory::kStart;
    job.training_start = in_memory::kStart + 10s;
    put_job();
    EXPECT_TRUE(objects->create_bucket("models", "eu-west-1"));
    clock.advance(60s);
  }
  void put_job() { control.jobs[job.key] = std::make_shared<const domain::Job>(job); }
  void put(const std::string& key, const std::string& bytes) {
    EXPECT_TRUE(objects::write_all(*objects, "models", key, bytes));
  }
  own::GetJobTimelineResponse timeline() {
    own::GetJobTimelineRequest request;
    request.job_name = "mnist-1";
    auto out = call<own::GetJobTimeline>(request);
    EXPECT_TRUE(out);
    return out ? *out : own::GetJobTimelineResponse();
  }
  // Returns the events with this name.
  std::vector<Json> named(const own::GetJobTimelineResponse& response, const std::string& name) {
    std::vector<Json> events;
    const Json trace = *parse_json(*response.trace);
    for (const Json& event : trace["traceEvents"])
      if (event["name"] == name) events.push_back(event);
    return events;
  }

  domain::Job job;
};

constexpr const char* kStep = R"([{"name":"step","ph":"X","pid":0,"tid":0,"ts":7,"dur":2}])";

TEST_F(TimelineWorld, ExtendsARunningJobUntilNow) {
  const auto response = timeline();
  EXPECT_EQ(response.job_name, "mnist-1");
  EXPECT_FALSE(response.notes);
  const auto jobs = named(response, "mnist-1");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["ts"], to_milliseconds(in_memory::kStart) * 1000);
  EXPECT_EQ(jobs[0]["dur"], 60'000'000);
}

TEST_F(TimelineWorld, HasTheTraceFilesOfItsFolder) {
  put("team/mnist-1/output/intermediate/timelines/rank-0.json", kStep);
  put("team/mnist-1/output/intermediate/other.json", kStep);
  put("team/mnist-10/output/intermediate/timelines/rank-0.json", kStep);
  put("team/mnist-1/output/intermediate/timelines/empty.json", "");
  const auto response = timeline();
  const auto steps = named(response, "step");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0]["ts"], to_milliseconds(in_memory::kStart + 10s) * 1000);
  EXPECT_EQ(response.notes,
            (std::vector<std::string>{
                "rank-0.json: its clock is unknown, so it is placed where training starts"}));
}

TEST_F(TimelineWorld, LeavesOutFilesThatTheCallerMayNotRead) {
  put("team/mnist-1/output/intermediate/timelines/rank-0.json", kStep);
  context.principal.kind = PrincipalKind::user;
  context.principal.arn = "arn:aws:iam::123456789012:user/ann";
  const auto response = timeline();
  EXPECT_TRUE(named(response, "step").empty());
  EXPECT_EQ(named(response, "mnist-1").size(), 1u);
  EXPECT_EQ(response.notes,
            (std::vector<std::string>{"1 trace file left out: reading them needs s3:GetObject on "
                                      "team/mnist-1/output/intermediate/timelines/*"}));
}

TEST_F(TimelineWorld, ReadsOnlyTheBeginningOfLargeFilesAndTheFirstFiles) {
  const std::string folder = "team/mnist-1/output/intermediate/timelines/";
  std::string large = "[";
  for (int i = 0; i < 20'000; ++i) large += std::string(kStep).substr(1, 55) + ",\n";
  for (int i = 100; i < 180; ++i) put(folder + std::to_string(i), i == 100 ? large : kStep);
  const auto response = timeline();
  EXPECT_LT(response.trace->size(), size_t(9) << 20);
  const auto& notes = *response.notes;
  EXPECT_EQ(notes[0], "the first 64 trace files only");
  EXPECT_EQ(notes[2], "100: the first events only");
  EXPECT_EQ(notes.size(), 66u) << "one for each clock, and these";
}

TEST_F(TimelineWorld, IsAvailableInTheFormatOfOpenTelemetry) {
  own::GetJobTimelineRequest request;
  request.job_name = "mnist-1";
  request.format = "otlp";
  auto response = call<own::GetJobTimeline>(request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->trace_id, domain::trace_id_of(job));
  const Json trace = *parse_json(*response->trace);
  EXPECT_EQ(trace["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], *response->trace_id);
}

TEST_F(TimelineWorld, HasNoFilesForJobsWithoutOutput) {
  job.spec.output_uri = "";
  put_job();
  EXPECT_FALSE(timeline().notes);
  job.spec.output_uri = "s3://absent/team";
  put_job();
  EXPECT_FALSE(timeline().notes);
}

TEST_F(TimelineWorld, RejectsArraysAndUnknownJobs) {
  own::GetJobTimelineRequest request;
  request.job_name = "absent";
  EXPECT_EQ(refusal<own::GetJobTimeline>(request),
            "ValidationException: Requested resource not found.");
  job.spec.array.size = 2;
  put_job();
  request.job_name = "mnist-1";
  EXPECT_EQ(refusal<own::GetJobTimeline>(request).substr(0, 40),
            "ValidationException: The job is an array");
}

}  // namespace
}  // namespace trainyard::api::trainyard_api

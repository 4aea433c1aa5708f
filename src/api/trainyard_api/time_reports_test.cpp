#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
using domain::Phase;

// `mnist-1` waits 10 s, starts 5 s, and trains 45 s on its hosts.
struct TimeWorld : OperationsWorld, ::testing::Test {
  TimeWorld() : OperationsWorld(trainyard_api::add_time_reports) {
    context.principal.kind = PrincipalKind::owner;
  }
  domain::Job job(uint64_t number, const std::string& name, uint32_t hosts,
                  const std::string& user = "user/ann") {
    domain::Job out;
    out.number = number;
    out.key = {"eu-west-1", name};
    out.account = "123456789012";
    out.spec.groups = {{"homogeneousCluster", "ml.m5.large", hosts}};
    out.state = domain::JobState::completed;
    out.created = in_memory::kStart;
    const auto at = [](int64_t seconds) { return in_memory::kStart + 1s * seconds; };
    out.attempts = {{.number = 1,
                     .state = domain::AttemptState::ended,
                     .started = at(10),
                     .training_started = at(15),
                     .ended = at(60)}};
    out.transitions = {{Phase::starting, "", at(0), at(15)},
                       {Phase::training, "", at(15), at(60)},
                       {Phase::completed, "", at(60), at(60)}};
    control.tags_of[control::job_arn(out)] = {
        {std::string(kCreatedByTag), "arn:aws:iam::123456789012:" + user}};
    control.jobs[out.key] = std::make_shared<const domain::Job>(out);
    control.page.jobs.push_back(out);
    return out;
  }
  own::GetTimeReportResponse report(const std::string& by) {
    own::GetTimeReportRequest request;
    request.group_by = by;
    auto out = call<own::GetTimeReport>(request);
    EXPECT_TRUE(out);
    return out ? *out : own::GetTimeReportResponse();
  }
};

TEST_F(TimeWorld, DescribesTheTimeOfOneJob) {
  job(1, "mnist-1", 2);
  own::DescribeJobTimeRequest request;
  request.job_name = "mnist-1";
  auto found = call<own::DescribeJobTime>(request);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->wall_milliseconds, 60'000);
  EXPECT_EQ(found->held_milliseconds, 50'000);
  EXPECT_DOUBLE_EQ(*found->effective_training_time_ratio, 0.75);
  EXPECT_DOUBLE_EQ(*found->goodput, 0.9);
  EXPECT_EQ(found->lost_work_is_known, true);
  ASSERT_EQ(found->intervals->size(), 3u);
  int64_t sum = 0;
  for (const own::TimeInterval& interval : *found->intervals) sum += *interval.milliseconds;
  EXPECT_EQ(sum, *found->wall_milliseconds);
  EXPECT_EQ(found->intervals->at(0).use, "Queued");
  EXPECT_FALSE(found->intervals->at(0).attempt_number);
  EXPECT_EQ(found->intervals->at(2).use, "Training");
  EXPECT_EQ(found->intervals->at(2).attempt_number, 1);
  EXPECT_EQ(found->intervals->at(2).start_time, in_memory::kStart + 15s);
}

TEST_F(TimeWorld, SumsByUserQueueMonthAndJob) {
  job(1, "mnist-1", 1);
  job(2, "mnist-2", 4);
  job(3, "bert", 8, "user/bob");
  const auto users = report("user");
  ASSERT_EQ(users.groups->size(), 2u);
  EXPECT_EQ(users.groups->at(0).key, "user/bob") << "it held most host time";
  EXPECT_EQ(users.groups->at(0).held_host_milliseconds, 400'000);
  EXPECT_EQ(users.groups->at(1).jobs, 2);
  EXPECT_EQ(users.groups->at(1).wall_milliseconds, 120'000);
  EXPECT_EQ(users.total->jobs, 3);
  EXPECT_DOUBLE_EQ(*users.total->goodput, 0.9);
  int64_t sum = 0;
  for (const own::TimeUse& use : *users.total->uses) sum += *use.milliseconds;
  EXPECT_EQ(sum, *users.total->wall_milliseconds);
  const auto months = report("month");
  ASSERT_EQ(months.groups->size(), 1u);
  EXPECT_EQ(months.groups->at(0).key, "2026-11");
  EXPECT_EQ(report("queue").groups->at(0).key, "");
  EXPECT_EQ(report("job").groups->size(), 3u);
}

TEST_F(TimeWorld, RejectsUnknownJobs) {
  own::DescribeJobTimeRequest request;
  request.job_name = "absent";
  EXPECT_EQ(refusal<own::DescribeJobTime>(request),
            "ValidationException: Requested resource not found.");
}

}  // namespace
}  // namespace trainyard::api::trainyard_api

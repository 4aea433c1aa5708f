#include "domain/tracing/trace_context.hpp"

#include <gtest/gtest.h>

#include <set>

namespace trainyard::domain {
namespace {

Job traced_job() {
  Job job;
  job.number = 7;
  job.account = "123456789012";
  job.key = {"eu-west-1", "mnist-1"};
  job.created = from_milliseconds(1'763'631'900'000);
  return job;
}

TEST(TraceContext, IdsDependOnlyOnTheIdentity) {
  Job job = traced_job();
  EXPECT_EQ(trace_id_of(job), "8713db6c364048d9f2ab83c71663b860");
  EXPECT_EQ(span_id_of(job, "job"), "e0f204852bf7a059");
  EXPECT_EQ(trace_parent_of(job, 2, 0), "00-8713db6c364048d9f2ab83c71663b860-df75ff454734a01f-01");
  job.state = JobState::failed;
  job.attempts.emplace_back();
  EXPECT_EQ(trace_id_of(job), trace_id_of(traced_job()));
}

TEST(TraceContext, IdsOfOtherJobsAndSpansDiffer) {
  std::set<std::string> traces{trace_id_of(traced_job())};
  const auto add = [&](const auto& change) {
    Job job = traced_job();
    change(job);
    EXPECT_TRUE(traces.insert(trace_id_of(job)).second);
  };
  add([](Job& job) { job.number = 8; });
  add([](Job& job) { job.account = "210987654321"; });
  add([](Job& job) { job.key.region = "us-east-1"; });
  add([](Job& job) { job.key.name = "mnist-2"; });
  add([](Job& job) { job.created += 1ms; });
  std::set<std::string> spans;
  for (uint32_t attempt = 1; attempt <= 20; ++attempt)
    for (HostIndex host = 0; host < 20; ++host)
      EXPECT_TRUE(spans.insert(span_id_of(traced_job(), host_place(attempt, host))).second);
}

}  // namespace
}  // namespace trainyard::domain

#include "trainyard_api/timeline/otlp_trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/json.hpp"
#include "domain/tracing/trace_context.hpp"

namespace trainyard::api::trainyard_api {
namespace {

const Instant kExportedCreated = from_milliseconds(1'763'631'900'000);

// Waits 10 s, and fails after 50 s on one host.
domain::Job failed_job() {
  const auto at = [](int64_t seconds) { return kExportedCreated + std::chrono::seconds(seconds); };
  domain::Job job;
  job.number = 7;
  job.account = "123456789012";
  job.key = {"eu-west-1", "mnist-1"};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
  job.state = domain::JobState::failed;
  job.failure_reason = "AlgorithmError: no";
  job.created = kExportedCreated;
  domain::Host host;
  host.machine = "box";
  host.exit_code = 1;
  host.failure = "no\xff";
  host.reach(domain::HostState::placed, at(10));
  host.reach(domain::HostState::running, at(15));
  host.reach(domain::HostState::failed, at(60));
  job.attempts = {{.number = 1,
                   .state = domain::AttemptState::ended,
                   .hosts = {host},
                   .failure = "no",
                   .started = at(10),
                   .ended = at(60)}};
  job.transitions = {{domain::Phase::starting, "Preparing", at(0), at(15)},
                     {domain::Phase::training, "", at(15), at(60)},
                     {domain::Phase::failed, "", at(60), at(60)}};
  return job;
}

Json spans_of_trace(const domain::Job& job) {
  const Json trace = *parse_json(otlp_trace_of(job, kExportedCreated + 1'000s));
  EXPECT_EQ(trace["resourceSpans"].size(), 1u);
  return trace["resourceSpans"][0]["scopeSpans"][0]["spans"];
}

std::string text_of(const Json& span, const char* member) {
  return span[member].get<std::string>();
}

TEST(OtlpTrace, MakesATreeOfSpansBelowTheJob) {
  const domain::Job job = failed_job();
  const Json spans = spans_of_trace(job);
  std::map<std::string, std::string> names;  // by id
  for (const Json& span : spans) {
    EXPECT_EQ(span["traceId"], domain::trace_id_of(job));
    EXPECT_TRUE(names.emplace(text_of(span, "spanId"), text_of(span, "name")).second)
        << "ids differ";
  }
  std::string tree;
  for (const Json& span : spans)
    tree += text_of(span, "name") + " < " +
            (span.contains("parentSpanId") ? names.at(text_of(span, "parentSpanId")) : "none") +
            "\n";
  EXPECT_EQ(tree,
            "mnist-1 < none\nQueued < mnist-1\nStarting < attempt 1\nTraining < attempt 1\n"
            "attempt 1 < mnist-1\nalgo-1 < attempt 1\nplaced < algo-1\nrunning < algo-1\n");
}

TEST(OtlpTrace, EncodesASpan) {
  const domain::Job job = failed_job();
  const Json spans = spans_of_trace(job);
  EXPECT_EQ(
      dump(spans[5]),
      R"({"attributes":[{"key":"host.name","value":{"stringValue":"algo-1"}},{"key":"host.type","value":{"stringValue":"ml.m5.large"}},{"key":"trainyard.machine","value":{"stringValue":"box"}},{"key":"process.exit.code","value":{"intValue":"1"}}],"endTimeUnixNano":"1763631960000000000","kind":1,"name":"algo-1","parentSpanId":")" +
          domain::span_id_of(job, "attempt/1") + R"(","spanId":")" +
          domain::span_id_of(job, "attempt/1/algo-1") +
          R"(","startTimeUnixNano":"1763631910000000000","status":{"code":2,"message":"no)" +
          "\xef\xbf\xbd" + R"("},"traceId":")" + domain::trace_id_of(job) + R"("})");
  EXPECT_EQ(dump(spans[0]["events"][0]),
            R"({"attributes":[{"key":"message","value":{"stringValue":"Preparing"}}],)"
            R"("name":"Starting","timeUnixNano":"1763631900000000000"})");
  EXPECT_EQ(spans[0]["status"]["message"], "AlgorithmError: no");
  EXPECT_EQ(domain::trace_parent_of(job, 1, 0),
            "00-" + domain::trace_id_of(job) + "-" + spans[5]["spanId"].get<std::string>() + "-01");
}

TEST(OtlpTrace, KeepsTheIdsOfSpansWhileTheJobRuns) {
  domain::Job job = failed_job();
  job.state = domain::JobState::active;
  job.transitions.pop_back();
  job.transitions.back().end.reset();
  job.attempts[0].ended.reset();
  job.attempts[0].hosts[0].steps.pop_back();
  std::set<std::string> running;
  for (const Json& span : spans_of_trace(job)) running.insert(text_of(span, "spanId"));
  std::set<std::string> ended;
  for (const Json& span : spans_of_trace(failed_job())) ended.insert(text_of(span, "spanId"));
  EXPECT_EQ(running, ended);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api

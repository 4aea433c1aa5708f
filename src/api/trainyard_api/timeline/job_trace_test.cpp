#include "trainyard_api/timeline/job_trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/random.hpp"
#include "domain/job_time.hpp"

namespace trainyard::api::trainyard_api {
namespace {

using domain::HostState;
using domain::Phase;

const Instant kCreated = from_milliseconds(1'763'631'900'000);
Instant at(int64_t seconds) { return kCreated + std::chrono::seconds(seconds); }

// Waits 10 s, starts 5 s, trains 45 s on one host.
domain::Job completed_job() {
  domain::Job job;
  job.number = 1;
  job.key = {"eu-west-1", "mnist-1"};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
  job.state = domain::JobState::completed;
  job.created = kCreated;
  job.training_start = at(15);
  domain::Host host;
  host.machine = "box";
  host.exit_code = 0;
  for (const auto& [state, second] :
       {std::pair{HostState::placed, 10}, std::pair{HostState::downloading, 11},
        std::pair{HostState::running, 15}, std::pair{HostState::finished, 60}})
    host.reach(state, at(second));
  job.attempts = {{.number = 1,
                   .state = domain::AttemptState::ended,
                   .hosts = {host},
                   .started = at(10),
                   .training_started = at(15),
                   .ended = at(60)}};
  job.transitions = {{Phase::starting, "Preparing", at(0), at(15)},
                     {Phase::training, "", at(15), at(60)},
                     {Phase::completed, "", at(60), at(60)}};
  return job;
}

JobTrace drawn(const domain::Job& job, const std::vector<TraceFile>& files = {}) {
  return trace_of(job, files, at(1'000), {});
}

Json events_of(const JobTrace& trace) {
  const auto json = parse_json(trace.text);
  EXPECT_TRUE(json) << json.error().message;
  return json ? (*json)["traceEvents"] : Json::array();
}

TEST(JobTrace, ShowsACompletedJob) {
  const JobTrace trace = drawn(completed_job());
  EXPECT_EQ(trace.notes, std::vector<std::string>());
  EXPECT_EQ(
      trace.text,
      R"({"displayTimeUnit":"ms","otherData":{"created":"2025-11-20T09:45:00.000Z","job":"mnist-1","region":"eu-west-1","state":"completed"},"traceEvents":[
{"args":{"name":"control plane"},"name":"process_name","ph":"M","pid":1,"tid":0},
{"args":{"sort_index":1},"name":"process_sort_index","ph":"M","pid":1,"tid":0},
{"args":{"name":"job"},"name":"thread_name","ph":"M","pid":1,"tid":1},
{"args":{"name":"attempts"},"name":"thread_name","ph":"M","pid":1,"tid":2},
{"args":{"name":"status"},"name":"thread_name","ph":"M","pid":1,"tid":3},
{"args":{"hosts":1,"state":"completed"},"cat":"job","dur":60000000,"name":"mnist-1","ph":"X","pid":1,"tid":1,"ts":1763631900000000},
{"cat":"time","dur":10000000,"name":"Queued","ph":"X","pid":1,"tid":1,"ts":1763631900000000},
{"args":{"attempt":1},"cat":"time","dur":5000000,"name":"Starting","ph":"X","pid":1,"tid":1,"ts":1763631910000000},
{"args":{"attempt":1},"cat":"time","dur":45000000,"name":"Training","ph":"X","pid":1,"tid":1,"ts":1763631915000000},
{"args":{"state":"ended"},"cat":"attempt","dur":50000000,"name":"attempt 1","ph":"X","pid":1,"tid":2,"ts":1763631910000000},
{"cat":"attempt","name":"training starts","ph":"i","pid":1,"s":"t","tid":2,"ts":1763631915000000},
{"args":{"message":"Preparing"},"cat":"status","dur":15000000,"name":"Starting","ph":"X","pid":1,"tid":3,"ts":1763631900000000},
{"cat":"status","dur":45000000,"name":"Training","ph":"X","pid":1,"tid":3,"ts":1763631915000000},
{"cat":"status","name":"Completed","ph":"i","pid":1,"s":"t","tid":3,"ts":1763631960000000},
{"args":{"name":"algo-1"},"name":"process_name","ph":"M","pid":2,"tid":0},
{"args":{"sort_index":2},"name":"process_sort_index","ph":"M","pid":2,"tid":0},
{"args":{"name":"agent"},"name":"thread_name","ph":"M","pid":2,"tid":1},
{"args":{"attempt":1,"exit_code":0,"instance_type":"ml.m5.large","machine":"box","state":"finished"},"cat":"host","dur":50000000,"name":"algo-1","ph":"X","pid":2,"tid":1,"ts":1763631910000000},
{"cat":"host","dur":1000000,"name":"placed","ph":"X","pid":2,"tid":1,"ts":1763631910000000},
{"cat":"host","dur":4000000,"name":"downloading","ph":"X","pid":2,"tid":1,"ts":1763631911000000},
{"cat":"host","dur":45000000,"name":"running","ph":"X","pid":2,"tid":1,"ts":1763631915000000},
{"cat":"host","name":"finished","ph":"i","pid":2,"s":"t","tid":1,"ts":1763631960000000}
]}
)");
}

TEST(JobTrace, ShowsThePendingReasonOfAWaitingJob) {
  domain::Job job = completed_job();
  job.state = domain::JobState::waiting;
  job.wait_reason = "waits for 8 GPU";
  job.attempts.clear();
  job.transitions = {{Phase::starting, "", at(0), {}}};
  for (const Json& event : events_of(drawn(job))) {
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["dur"], 1'000'000'000) << "until now: " << event;
    if (event["name"] == "mnist-1") {
      EXPECT_EQ(event["args"]["wait_reason"], "waits for 8 GPU");
    }
  }
}

TEST(JobTrace, EncodesHostileTexts) {
  domain::Job job = completed_job();
  job.failure_reason = "\"}],\xff\x1b[2J";
  job.attempts[0].failure = std::string(100'000, '"');
  job.attempts[0].hosts[0].failure = "</script>\n";
  const JobTrace trace = drawn(job, {{"\"a\x01", R"([{"ph":"X","ts":1,"name":"\u0000\"}"}])"}});
  EXPECT_EQ(trace.text.find('\x1b'), std::string::npos);
  EXPECT_LT(trace.text.size(), 10'000u) << "reasons are shortened";
  EXPECT_FALSE(events_of(trace).empty());
  EXPECT_EQ((*parse_json(trace.text))["otherData"]["notes"].size(), 1u);
}

TEST(JobTrace, ShowsOnlyTheCurrentStateForOldRecords) {
  domain::Job job = completed_job();
  job.state = domain::JobState::active;
  job.transitions.pop_back();
  job.transitions.back().end.reset();
  job.attempts[0].ended.reset();
  domain::Host& host = job.attempts[0].hosts[0];
  host.steps.clear();
  host.state = HostState::running;
  host.state_since = at(15);
  std::vector<std::string> names;
  for (const Json& event : events_of(drawn(job)))
    if (event["pid"] == 2 && event["ph"] == "X") {
      names.push_back(event["name"].get<std::string>());
      EXPECT_EQ(event["dur"], 985'000'000);
    }
  EXPECT_EQ(names, (std::vector<std::string>{"algo-1", "running"}));
}

TEST(JobTrace, StaysSmallForLargeJobs) {
  domain::Job job = completed_job();
  job.spec.groups[0].count = 10'000;
  domain::Host host = job.attempts[0].hosts[0];
  host.failure = std::string(10'000, '\x01');  // six bytes each, as JSON
  job.attempts[0].hosts.assign(10'000, host);
  job.transitions = std::vector(5'000, job.transitions[1]);
  const JobTrace trace = drawn(job);
  EXPECT_LT(trace.text.size(), kTraceBytesMax + (64 << 10));
  EXPECT_FALSE(events_of(trace).empty());
  EXPECT_EQ(trace.notes, (std::vector<std::string>{"the last 1000 of 5000 statuses only",
                                                   "the first 1000 of 10000 hosts only"}));
}

// -- properties of random jobs

// Makes instants that are sometimes out of order, like those of hosts with different clocks.
class RandomJob {
 public:
  explicit RandomJob(uint64_t seed) : random_(seed) {}

  domain::Job make() {
    domain::Job job = completed_job();
    job.attempts.clear();
    job.transitions.clear();
    job.state = below(2) == 0 ? domain::JobState::active : domain::JobState::completed;
    for (uint32_t number = 1; number <= below(4) + 1; ++number) {
      domain::Attempt& attempt = job.attempts.emplace_back();
      attempt.number = number;
      attempt.started = later();
      attempt.hosts.resize(1 + below(3));
      add_phases(job);
      for (domain::Host& host : attempt.hosts) add_steps(host, attempt.started);
      attempt.ended = later();
    }
    if (job.state == domain::JobState::active) job.attempts.back().ended.reset();
    job.spec.groups[0].count = uint32_t(job.attempts.back().hosts.size());
    return job;
  }

 private:
  uint64_t below(uint64_t end) { return random_.below(end); }
  Instant later() {
    now_ += Duration(below(10'000));
    return now_ - (below(10) == 0 ? Duration(below(20'000)) : Duration{});
  }
  void add_phases(domain::Job& job) {
    for (const Phase phase : {Phase::starting, Phase::downloading, Phase::training}) {
      const Instant begin = later();
      if (!job.transitions.empty()) job.transitions.back().end = begin;
      job.transitions.push_back({phase, "", begin, {}});
    }
  }
  void add_steps(domain::Host& host, Instant begin) {
    const size_t last = below(kEnumerators<HostState>);
    for (const HostState state : enumerators<HostState>()) {
      if (size_t(state) > last) break;
      if (below(4) == 0 && state != HostState::placed) continue;
      host.reach(state, begin + Duration(below(60'000)));
    }
  }

  SeededRandom random_;
  Instant now_ = kCreated;
};

// Returns the spans of each track, in the order of the trace.
using Spans = std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<int64_t, int64_t>>>;

Spans spans_of(const Json& events) {
  Spans spans;
  for (const Json& event : events)
    if (event["ph"] == "X") {
      const auto begin = event["ts"].get<int64_t>();
      EXPECT_GE(event["dur"].get<int64_t>(), 0);
      spans[{event["pid"].get<int64_t>(), event["tid"].get<int64_t>()}].emplace_back(
          begin, begin + event["dur"].get<int64_t>());
    }
  return spans;
}

// Checks that two spans of a track are disjoint, or that the later one is inside the earlier one.
void expect_nested(const Spans& spans) {
  for (const auto& [track, list] : spans)
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i + 1; j < list.size(); ++j) {
        const bool disjoint = list[j].first >= list[i].second;
        const bool inside = list[j].first >= list[i].first && list[j].second <= list[i].second;
        EXPECT_TRUE(disjoint || inside)
            << "track " << track.first << "/" << track.second << ": " << i << " and " << j;
      }
}

TEST(JobTrace, NestsSpansThatSumUpToTheTimeReport) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const domain::Job job = RandomJob(seed).make();
    const Json events = events_of(drawn(job));
    expect_nested(spans_of(events));
    const domain::JobTime time = domain::time_of(job, at(1'000));
    std::map<std::string, int64_t> sums;
    int64_t whole = 0;
    for (const Json& event : events) {
      if (event["ph"] != "X" || event["pid"] != 1 || event["tid"] != 1) continue;
      if (event["cat"] == "job") whole += event["dur"].get<int64_t>();
      if (event["cat"] == "time")
        sums[event["name"].get<std::string>()] += event["dur"].get<int64_t>();
    }
    EXPECT_EQ(whole, time.wall.count() * 1000);
    for (const domain::TimeUse use : enumerators<domain::TimeUse>())
      EXPECT_EQ(sums[std::string(to_string(use))], time.in(use).count() * 1000) << to_string(use);
  }
}

}  // namespace
}  // namespace trainyard::api::trainyard_api

#include "reconcile/spot.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace trainyard::reconcile {
namespace {

using domain::AttemptState;
using domain::JobState;

const Instant kSpotNow = from_milliseconds(1'000'000'000);
using Jobs = std::vector<std::shared_ptr<const domain::Job>>;

domain::Job spot_job(domain::JobNumber number, uint32_t hosts = 2,
                     Instant started = kSpotNow - 60s) {
  domain::Job job;
  job.number = number;
  job.key = {"us-east-1", "job-" + std::to_string(number)};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", hosts}};
  job.spec.spot = true;
  job.state = JobState::active;
  domain::Attempt attempt;
  attempt.started = started;
  attempt.hosts.resize(hosts);
  for (domain::Host& host : attempt.hosts) host.machine = "box-" + std::to_string(number);
  job.attempts = {attempt};
  return job;
}
Jobs jobs(std::vector<domain::Job> all) {
  Jobs shared;
  for (auto& job : all) shared.push_back(std::make_shared<const domain::Job>(std::move(job)));
  return shared;
}
std::string text_of(const std::vector<SpotInterruption>& all) {
  std::string text;
  for (const SpotInterruption& each : all)
    text += (text.empty() ? "" : " ") + each.attempt.text() + "/" + std::to_string(each.host);
  return text;
}
Spot with(TraceEvent event) {
  Spot spot;
  spot.trace = {std::move(event)};
  return spot;
}

TEST(SpotInterruptions, InterruptHostsThatRunAtTheTimeOfATraceEvent) {
  const TraceEvent one{kSpotNow - 1s, "", "", "", 1, 7};
  const Jobs both = jobs({spot_job(1), spot_job(2)});
  EXPECT_EQ(text_of(spot_interruptions(both, with(one), kSpotNow)), "j1a1/0");
  EXPECT_EQ(spot_interruptions(both, with(one), kSpotNow)[0].reason,
            "spot capacity was reclaimed (line 7 of the trace)");
  EXPECT_EQ(text_of(spot_interruptions(both, with({kSpotNow - 1s, "", "", "", 2, 1}), kSpotNow)),
            "j1a1/0")
      << "one host per gang";
  EXPECT_EQ(text_of(spot_interruptions(both, with({kSpotNow - 1s, "", "", "", 3, 1}), kSpotNow)),
            "j1a1/0 j2a1/0");
  EXPECT_EQ(
      text_of(spot_interruptions(both, with({kSpotNow - 1s, "", "", "box-2", 1, 1}), kSpotNow)),
      "j2a1/0");
  EXPECT_EQ(
      text_of(spot_interruptions(both, with({kSpotNow - 1s, "eu-west-1", "", "", 1, 1}), kSpotNow)),
      "");
  EXPECT_EQ(text_of(spot_interruptions(
                both, with({kSpotNow - 1s, "us-east-1", "ml.m5.large", "", 1, 1}), kSpotNow)),
            "j1a1/0");
  EXPECT_EQ(text_of(spot_interruptions(both, with({kSpotNow - 1s, "", "ml.p3.2xlarge", "", 1, 1}),
                                       kSpotNow)),
            "");
  EXPECT_EQ(text_of(spot_interruptions(both, with({kSpotNow + 1s, "", "", "", 1, 1}), kSpotNow)),
            "")
      << "the event is in the future";
  EXPECT_EQ(text_of(spot_interruptions(both, with({kSpotNow - 1h, "", "", "", 1, 1}), kSpotNow)),
            "")
      << "the event is too old";
}

TEST(SpotInterruptions, ApplyALineOfATraceOnce) {
  const Spot spot = with({kSpotNow - 10s, "", "", "", 2, 1});
  domain::Job gone = spot_job(1);
  gone.attempts[0].state = AttemptState::ended;
  gone.attempts[0].ended = kSpotNow - 5s;
  gone.attempts[0].hosts.clear();
  gone.state = JobState::waiting;
  EXPECT_EQ(text_of(spot_interruptions(jobs({gone, spot_job(2)}), spot, kSpotNow)), "")
      << "the first attempt had both hosts of the event";
  domain::Job back = gone;
  back.state = JobState::active;
  domain::Attempt second = spot_job(1).attempts[0];
  second.number = 2;
  second.started = kSpotNow - 1s;
  back.attempts.push_back(second);
  EXPECT_EQ(text_of(spot_interruptions(jobs({back, spot_job(2)}), spot, kSpotNow)), "")
      << "the job's next attempt did not run then";
}

TEST(SpotInterruptions, InterruptOnlyRunningSpotJobs) {
  Spot spot = with({kSpotNow - 1s, "", "", "", 9, 1});
  spot.interruptions_per_host_hour = 1e9;
  domain::Job lasting = spot_job(1), waiting = spot_job(2), stopping = spot_job(3),
              taken = spot_job(4);
  lasting.spec.spot = false;
  waiting.attempts.clear();
  waiting.state = JobState::waiting;
  stopping.state = JobState::stopping;
  taken.attempts[0].interruption = "taken";
  EXPECT_EQ(text_of(spot_interruptions(jobs({lasting, waiting, stopping, taken}), spot, kSpotNow)),
            "");
}

TEST(SpotInterruptions, HaveTheConfiguredRateAndAreRepeatable) {
  Spot spot;
  spot.interruptions_per_host_hour = 2;
  spot.seed = 7;
  std::vector<domain::Job> many;
  for (domain::JobNumber number = 1; number <= 4'000; ++number)
    many.push_back(spot_job(number, 1, kSpotNow - 30min));
  const Jobs all = jobs(many);
  const auto taken = spot_interruptions(all, spot, kSpotNow);
  // After half an hour at two an hour: 1 - 1/e of them.
  EXPECT_NEAR(double(taken.size()) / 4'000, 0.632, 0.03);
  EXPECT_EQ(text_of(spot_interruptions(all, spot, kSpotNow)), text_of(taken));
  EXPECT_GE(spot_interruptions(all, spot, kSpotNow + 10min).size(), taken.size())
      << "selected hosts stay selected";
  spot.seed = 8;
  EXPECT_NE(text_of(spot_interruptions(all, spot, kSpotNow)), text_of(taken));
}

TEST(Trace, IsReadLineByLine) {
  const auto events = parse_trace(
      "# seconds or instants\n\n 10.5 , us-east-1,ml.m5.large,3\n"
      "2026-11-20T09:45:00Z,,,box-1 # the machine\n20,,,\n",
      kSpotNow);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].at, kSpotNow + 10'500ms);
  EXPECT_EQ((*events)[0].region, "us-east-1");
  EXPECT_EQ((*events)[0].hosts, 3u);
  EXPECT_EQ((*events)[0].line, 3u);
  EXPECT_EQ((*events)[1].machine, "box-1");
  EXPECT_EQ((*events)[2].hosts, 1u);
}

TEST(Trace, NamesInvalidLines) {
  EXPECT_EQ(parse_trace("1,,,1\nnow,,,1\n", kSpotNow).error().message.substr(0, 14),
            "line 2: 'now' ");
  EXPECT_EQ(parse_trace("1,2,3", kSpotNow).error().message,
            "line 1: 3 fields: expected at,region,instance_type,hosts");
  EXPECT_EQ(parse_trace("1,,,0", kSpotNow).error().message, "line 1: invalid number of hosts '0'");
  for (const char* seconds : {"1e300", "-1e300", "nan", "inf", "315360001", "9223372036854775807"})
    EXPECT_FALSE(parse_trace(std::string(seconds) + ",,,1", kSpotNow)) << seconds;
}

}  // namespace
}  // namespace trainyard::reconcile

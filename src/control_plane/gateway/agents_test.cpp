#include "gateway/agents.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/testing/test_clock.hpp"
#include "batch/catalog.hpp"
#include "control/testing/test_world.hpp"
#include "wire/codec.hpp"

namespace trainyard::gateway {
namespace {

using domain::HostState;
using domain::StopCause;

// Records the messages that the server sends to an agent, and whether it closes the link.
class TestLink final : public net::Link {
 public:
  std::vector<wire::Message> sent;
  bool closed = false;
  void send(std::string frame) override { sent.push_back(*wire::decode(frame)); }
  void close() override { closed = true; }

  std::string messages() const {
    std::string text;
    for (const auto& message : sent) text += (text.empty() ? "" : " ") + name(message);
    return text;
  }

 private:
  static std::string name(const wire::Message& message) {
    if (const auto* welcome = std::get_if<wire::Welcome>(&message))
      return "welcome:" + std::to_string(welcome->state_acknowledged) + "," +
             std::to_string(welcome->data_acknowledged);
    if (std::holds_alternative<wire::Refused>(message)) return "refused";
    if (const auto* acknowledged = std::get_if<wire::Acknowledge>(&message))
      return (acknowledged->track == wire::Track::state ? "state:" : "data:") +
             std::to_string(acknowledged->number);
    if (const auto* stop = std::get_if<wire::Stop>(&message))
      return "stop:" + std::string(to_string(stop->cause)) + (stop->grace == 0ms ? " at once" : "");
    if (std::holds_alternative<wire::Credentials>(message)) return "credentials";
    if (const auto* peers = std::get_if<wire::PeersDrained>(&message)) {
      std::string text = "peers:";
      for (const auto& key : peers->staged_models) text += "[" + key + "]";
      return text;
    }
    if (std::holds_alternative<wire::MainRuns>(message)) return "main runs";
    if (const auto* next = std::get_if<wire::NextOrder>(&message)) return "order:" + next->order;
    return "goodbye";
  }
};

class AgentsTest : public testing::Test {
 protected:
  explicit AgentsTest(const DataCaps& caps = {}) {
    control::Settings settings;
    settings.account = "123456789012";
    settings.images["machine"] = {};
    settings.scale_gangs = false;
    control = *control::make_control(settings, *ledger, launcher, logs, clock, random);
    agents = make_agents(
        *control, logs, metrics, clock, 120s,
        [this](const domain::Job&, const auto&, Instant now) {
          ++issued;
          return wire::Credentials{"key", "secret", "session", now + 1h};
        },
        caps,
        [this](LinkedAllocation linked) {
          allocations.push_back(std::move(linked));
          return allocation_refusal;
        });
    events = agents->events();
    control::CreateJob job;
    job.key = {"us-east-1", "a"};
    job.spec.image = "machine";
    job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
    control->create_job(job, [](const auto&) {});
    run();
    token = launcher.gangs.at({1, 1}).token;
  }

  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    const auto page =
        logs.read({"us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-2-1763631900"}, {});
    for (const auto& event : page->events) lines.push_back(event.message);
    return lines;
  }

  void run() {
    for (int iteration = 0; iteration < 4; ++iteration) {
      control->commit_step();
      control->reconcile_step();
    }
    control->commit_step();
  }
  std::shared_ptr<TestLink> open() {
    auto link = std::make_shared<TestLink>();
    events.opened(link);
    return link;
  }
  void send_message(const std::shared_ptr<TestLink>& link, const wire::Message& message) {
    events.frame(link, wire::encode(message));
    run();
  }
  std::shared_ptr<TestLink> hello(domain::HostIndex host) {
    auto link = open();
    send_message(link, wire::Hello{wire::kVersion, {1, 1}, host, token});
    return link;
  }
  void report(const std::shared_ptr<TestLink>& link, uint64_t number, HostState state,
              const std::string& staged = "") {
    wire::StateFact fact;
    fact.number = number;
    fact.at = clock.now();
    fact.state = state;
    fact.staged_model = staged;
    send_message(link, fact);
  }

  TestClock clock;
  control::test::MemoryLogs logs;
  control::test::MemoryMetrics metrics;
  control::test::KeptLauncher launcher;
  SeededRandom random{1};
  std::unique_ptr<ledger::Ledger> ledger = *ledger::open_sqlite(":memory:");
  std::unique_ptr<control::ControlPlane> control;
  std::unique_ptr<Agents> agents;
  net::LinkEvents events;
  std::string token;
  int issued = 0;
  std::vector<LinkedAllocation> allocations;
  std::string allocation_refusal;
};

TEST_F(AgentsTest, WelcomesTheAgentsThatItStarted) {
  clock.advance(3h);
  const auto link = hello(0);
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials");
  EXPECT_EQ(std::get<wire::Welcome>(link->sent.at(0)).now, kTestClockStart + 3h);
  for (int twice = 0; twice < 2; ++twice) report(link, 1, HostState::preparing);
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials state:1 state:1");
}

// A job of three hosts, of which the second is the main host.
class NodesTest : public AgentsTest {
 protected:
  NodesTest() {
    batch::ComputeEnvironment environment;
    environment.key = {"us-east-1", "box"};
    control->change_resource({batch::ResourceChange::create, environment}, [](const auto&) {});
    batch::JobQueue queue;
    queue.key = {"us-east-1", "q"};
    queue.environments = {"box"};
    control->change_resource({batch::ResourceChange::create, queue}, [](const auto&) {});
    control::CreateJob job;
    job.key = {"us-east-1", "nodes"};
    job.spec.image = "machine";
    job.spec.groups = {{"0:2", "vCPU", 3, domain::Share{0.5, 64 << 20, 0}}};
    job.spec.queue.emplace();
    job.spec.contract = domain::Contract::plain;
    job.spec.queue->name = "q";
    job.spec.definition = "arn:aws:batch:us-east-1:123456789012:job-definition/nodes:1";
    job.spec.main_node = 1;
    control->create_job(job, [](const auto&) {});
    run();
    token = launcher.gangs.at({2, 1}).token;
  }
  std::shared_ptr<TestLink> hello(domain::HostIndex host) {
    auto link = open();
    send_message(link, wire::Hello{wire::kVersion, {2, 1}, host, token});
    return link;
  }
};

TEST_F(NodesTest, NotifiesFollowersOnEachLinkThatTheMainHostRuns) {
  const auto main = hello(1), child = hello(0);
  report(child, 1, HostState::downloading);
  report(main, 1, HostState::downloading);
  EXPECT_EQ(child->messages(), "welcome:0,0 credentials state:1");
  report(main, 2, HostState::running);
  EXPECT_EQ(child->messages(), "welcome:0,0 credentials state:1 main runs");
  EXPECT_EQ(main->messages(), "welcome:0,0 credentials state:1 state:2");
  events.closed(child, unavailable("gone"));
  EXPECT_EQ(hello(0)->messages(), "welcome:1,0 main runs credentials");
  EXPECT_EQ(hello(2)->messages(), "welcome:0,0 main runs credentials")
      << "also on a link that is opened later";
}

TEST_F(NodesTest, StopsFollowersWhenTheMainHostHasEnded) {
  const auto main = hello(1), child = hello(0), other = hello(2);
  report(main, 1, HostState::running);
  report(child, 1, HostState::running);
  report(main, 2, HostState::draining);
  EXPECT_EQ(child->messages(), "welcome:0,0 credentials main runs state:1 stop:main_ended");
  EXPECT_EQ(other->messages(), "welcome:0,0 credentials main runs stop:main_ended");
  EXPECT_EQ(main->messages(), "welcome:0,0 credentials state:1 state:2");
}

TEST_F(AgentsTest, RejectsUnauthenticatedAgents) {
  const auto refusal = [&](const wire::Hello& hello) {
    const auto link = open();
    send_message(link, hello);
    return link->messages();
  };
  std::string other = token;
  other.back() ^= 1;
  EXPECT_EQ(refusal({wire::kVersion, {1, 1}, 0, other}), "refused");
  EXPECT_EQ(refusal({wire::kVersion, {1, 1}, 0, ""}), "refused");
  EXPECT_EQ(refusal({wire::kVersion, {1, 2}, 0, token}), "refused");
  EXPECT_EQ(refusal({wire::kVersion, {2, 1}, 0, token}), "refused");
  EXPECT_EQ(refusal({wire::kVersion, {1, 1}, 2, token}), "refused");
  EXPECT_EQ(refusal({wire::kVersion + 1, {1, 1}, 0, token, wire::kVersion + 1}), "refused");
}

TEST_F(AgentsTest, SpeaksTheLatestVersionThatTheAgentKnows) {
  const auto version_with = [&](uint32_t latest, uint32_t oldest) {
    const auto link = open();
    send_message(link, wire::Hello{latest, {1, 1}, 1, token, oldest});
    return std::get<wire::Welcome>(link->sent.at(0)).version;
  };
  EXPECT_EQ(version_with(1, 1), 1u) << "release 0.1.0";
  EXPECT_EQ(version_with(2, 1), 2u);
  EXPECT_EQ(version_with(9, 2), 2u);
}

TEST_F(AgentsTest, IgnoresUnknownMessagesOfALaterVersion) {
  const auto link = hello(0);
  events.frame(link, "\x7f of a later version");
  EXPECT_FALSE(link->closed);
  // A fact with an unknown state is counted, so that the next one is in order, and else ignored.
  wire::StateFact fact;
  fact.number = 1;
  fact.address = "10.0.0.2";  // the last field of this version
  std::string bytes = wire::encode(fact);
  bytes.at(1 + 8 + 8) = 99;
  events.frame(link, bytes + "a field");
  run();
  fact.number = 2;
  fact.state = HostState::running;
  send_message(link, fact);
  EXPECT_FALSE(link->closed);
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials state:1 state:2");
  EXPECT_EQ(control->find({"us-east-1", "a"}).value()->attempt()->hosts[0].state,
            HostState::running);
}

TEST_F(AgentsTest, ClosesLinksThatBreakTheProtocol) {
  auto link = open();
  events.frame(link, "\xff");
  EXPECT_TRUE(link->closed);
  link = open();
  send_message(link, wire::StateFact{});
  EXPECT_TRUE(link->closed) << "no Hello";
  link = hello(0);
  send_message(link, wire::Goodbye{});
  EXPECT_TRUE(link->closed) << "only the server may send it";
  link = hello(0);
  report(link, 2, HostState::preparing);
  EXPECT_TRUE(link->closed) << "a gap";
  link = hello(0);
  send_message(link, wire::LogBatch{2, {}});
  EXPECT_TRUE(link->closed) << "a gap in the batches";
}

TEST_F(AgentsTest, UsesTheNewestLinkOfAHost) {
  const auto first = hello(0);
  const auto second = hello(0);
  EXPECT_TRUE(first->closed);
  EXPECT_FALSE(second->closed);
}

TEST_F(AgentsTest, StoresLogsAndMetricsOnce) {
  auto link = hello(1);
  send_message(link, wire::LogBatch{1, {{clock.now(), "one"}, {clock.now(), "tw\xff"}}});
  send_message(
      link, wire::MetricBatch{
                2, {{"loss", clock.now(), 0.5, false}, {"CPUUtilization", clock.now(), 70, true}}});
  send_message(link,
               wire::MetricBatch{
                   3, {{"loss", clock.now(), std::numeric_limits<double>::quiet_NaN(), false}}});
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials data:1 data:2 data:3");
  link = hello(1);
  send_message(link, wire::MetricBatch{2, {{"loss", clock.now(), 0.5, false}}});
  EXPECT_EQ(link->messages(), "welcome:0,3 credentials data:3");
  const auto page =
      *logs.read({"us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-2-1763631900"}, {});
  ASSERT_EQ(page.events.size(), 2u);
  EXPECT_EQ(page.events[1].message, "tw\xef\xbf\xbd");
  const std::string space = "/aws/sagemaker/TrainingJobs";
  EXPECT_EQ(metrics.samples({"us-east-1", space, "loss", {{"TrainingJobName", "a"}}}), 1u);
  EXPECT_EQ(metrics.samples({"us-east-1", space, "CPUUtilization", {{"Host", "a/algo-2"}}}), 1u);
}

TEST_F(AgentsTest, LimitsNumbersAndTextsOfAnAgent) {
  auto link = hello(1);
  const Instant far = from_milliseconds(INT64_MAX), before = from_milliseconds(INT64_MIN);
  send_message(
      link,
      wire::LogBatch{
          1, {{far, "far"}, {before, "before"}, {clock.now() + 1h, "a clock that is ahead"}}});
  send_message(link,
               wire::MetricBatch{
                   2, {{"loss", far, 0.5, false}, {std::string(1'000'000, 'm'), before, 1, true}}});
  send_message(link, wire::Progress{"image", UINT64_MAX, UINT64_MAX, false});
  wire::StateFact fact{1, before, HostState::running, std::string(1'000'000, 'x'), INT32_MIN};
  fact.address = "10.1.0.2\n" + std::string(1'000'000, '1');
  send_message(link, fact);
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials data:1 data:2 state:1");
  const auto page =
      *logs.read({"us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-2-1763631900"}, {});
  ASSERT_EQ(page.events.size(), 3u);
  for (const auto& event : page.events) EXPECT_LE(event.at - clock.now(), Duration(1h));
  EXPECT_EQ(metrics.samples(
                {"us-east-1", "/aws/sagemaker/TrainingJobs", "loss", {{"TrainingJobName", "a"}}}),
            1u);
  const auto job = *control->find({"us-east-1", "a"});
  EXPECT_LT(dump(progress_json(*job)).size(), 100'000u);
  EXPECT_GE(job->attempt()->hosts[1].state_since, job->created);
  EXPECT_EQ(job->attempt()->hosts[1].address, "");
  fact.number = 2;
  fact.model_uri = "s3://" + std::string(10'000, 'b');
  send_message(link, fact);
  EXPECT_TRUE(link->closed);
}

TEST_F(AgentsTest, DropsAndCountsLinesWhenTheDiskIsFull) {
  auto link = hello(1);
  logs.nearly_full = true;
  send_message(link, wire::LogBatch{1, {{clock.now(), "one"}}});
  send_message(link, wire::LogBatch{2, {{clock.now(), "second"}}});
  EXPECT_FALSE(link->closed);
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials data:1 data:2");
  logs.nearly_full = false;
  send_message(link, wire::LogBatch{3, {{clock.now(), "third"}}});
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(
      lines()[0],
      "trainyard: 11 bytes of log were dropped here because the server's disk was nearly full");
  EXPECT_EQ(lines()[1], "third");
  EXPECT_EQ(hello(1)->messages(), "welcome:0,3 credentials") << "dropped lines are not sent again";
}

class SmallLogTest : public AgentsTest {
 protected:
  SmallLogTest() : AgentsTest({.log_bytes_max = 10}) {}
};

TEST_F(SmallLogTest, EndsAtItsLimit) {
  auto link = hello(1);
  for (uint64_t batch = 1; batch <= 5; ++batch)
    send_message(link, wire::LogBatch{batch, {{clock.now(), "12345"}}});
  EXPECT_EQ(lines(), (std::vector<std::string>{"12345", "12345",
                                               "trainyard: the log of this host has reached its "
                                               "limit of 10 B; further lines are dropped"}));
  EXPECT_EQ(hello(1)->messages(), "welcome:0,5 credentials");
}

class FewMetricsTest : public AgentsTest {
 protected:
  FewMetricsTest() : AgentsTest({.metric_series_max = 2}) {}
};

TEST_F(FewMetricsTest, DropsPointsOfFurtherNames) {
  auto link = hello(1);
  uint64_t batch = 0;
  for (const char* name : {"a", "b", "c", "a", "d"})
    send_message(link, wire::MetricBatch{++batch, {{name, clock.now(), 1, false}}});
  const auto samples = [&](const char* name) {
    return metrics.samples(
        {"us-east-1", "/aws/sagemaker/TrainingJobs", name, {{"TrainingJobName", "a"}}});
  };
  EXPECT_EQ(samples("a"), 2u);
  EXPECT_EQ(samples("b"), 1u);
  EXPECT_EQ(samples("c") + samples("d"), 0u);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_NE(lines()[0].find("metrics of 2 names"), std::string::npos);
}

TEST_F(AgentsTest, AddsTheElapsedTimeToAnActivityUntilItsLinkCloses) {
  const auto link = hello(0);
  const auto send = [&](const wire::Activity& activity) {
    events.frame(link, wire::encode(activity));
  };
  EXPECT_TRUE(agents->activity(1).empty());
  send({2s, {{7, {}, 3s, 40}}});
  clock.advance(60s);
  auto found = agents->activity(1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].host, 0u);
  EXPECT_EQ(found[0].activity.output, Duration(62s));
  ASSERT_EQ(found[0].activity.ranks.size(), 1u);
  EXPECT_EQ(found[0].activity.ranks[0].collective, Duration(63s));
  EXPECT_FALSE(found[0].activity.ranks[0].output);
  EXPECT_TRUE(agents->activity(2).empty()) << "another job";

  send({Duration::max(), {{7, Duration::min(), {}, 40}}});
  found = agents->activity(1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].activity.output, Duration(365 * 24h)) << "an agent may report any number";
  EXPECT_EQ(found[0].activity.ranks[0].output, Duration(0s));
  send({{}, std::vector<wire::RankActivity>(513)});
  EXPECT_TRUE(link->closed);
}

TEST_F(AgentsTest, NamesAStuckRankInTheLogOfItsHostAndReportsIt) {
  const auto first = hello(0), second = hello(1);
  std::vector<diagnosis::FaultNews> faults;
  agents->report_faults([&](auto, const diagnosis::FaultNews& news) { faults.push_back(news); });
  const auto send_calls = [&](const auto& link, uint32_t rank, uint8_t kind) {
    wire::RankCalls calls{.rank = rank, .group = 9, .group_rank = rank, .group_ranks = 2};
    calls.completed = 50;
    calls.kind = kind;
    calls.unchanged = 9s;
    wire::Activity activity;
    activity.calls = {calls};
    activity.idle = 1h;
    events.frame(link, wire::encode(activity));
  };
  send_calls(first, 0, 1);
  EXPECT_TRUE(faults.empty()) << "one host's report is not enough";
  send_calls(second, 1, 0);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].begins);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(lines()[0].starts_with("trainyard: rank 1 on algo-2 seems to be stuck"));
  EXPECT_TRUE(agents->activity(1).at(0).faults.empty());
  EXPECT_EQ(agents->activity(1).at(1).faults.size(), 1u);
  send_calls(second, 1, 1);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_FALSE(faults[1].begins);
  EXPECT_TRUE(agents->activity(1)[1].faults.empty());
}

TEST_F(AgentsTest, SendsOrdersOncePerLink) {
  auto link = hello(0);
  control->stop_job({"us-east-1", "a"}, [](const auto&) {});
  run();
  run();
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials stop:user");
  link = hello(0);
  EXPECT_EQ(link->messages(), "welcome:0,0 stop:user credentials");
}

TEST_F(AgentsTest, SendsAStopWithoutGraceAfterOneWithIt) {
  auto link = hello(0);
  control->stop_job({"us-east-1", "a"}, [](const auto&) {});
  run();
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials stop:user");
  for (int twice = 0; twice < 2; ++twice) {
    control->kill_job({"us-east-1", "a"}, "now", [](const auto&) {});
    run();
  }
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials stop:user stop:user at once")
      << "it is sent only once";
  link = hello(0);
  EXPECT_EQ(link->messages(), "welcome:0,0 stop:user at once credentials");
}

// A link that records its host when a Stop is sent on it.
class NotingLink final : public net::Link {
 public:
  NotingLink(domain::HostIndex host, std::vector<domain::HostIndex>& stopped)
      : host_(host), stopped_(stopped) {}
  void send(std::string frame) override {
    if (std::holds_alternative<wire::Stop>(*wire::decode(frame))) stopped_.push_back(host_);
  }
  void close() override {}

 private:
  const domain::HostIndex host_;
  std::vector<domain::HostIndex>& stopped_;
};

TEST_F(AgentsTest, SendsOrdersInTheOrderOfConnection) {
  std::vector<domain::HostIndex> stopped;
  struct Links {
    NotingLink low, high;
  };
  const auto links = std::make_shared<Links>(Links{{1, stopped}, {0, stopped}});
  const std::shared_ptr<net::Link> first(links, &links->high), second(links, &links->low);
  for (const auto& [link, host] : {std::pair(first, 0), std::pair(second, 1)}) {
    events.opened(link);
    events.frame(link, wire::encode(wire::Hello{wire::kVersion, {1, 1}, uint32_t(host), token}));
    run();
  }
  control->stop_job({"us-east-1", "a"}, [](const auto&) {});
  run();
  EXPECT_EQ(stopped, (std::vector<domain::HostIndex>{0, 1}));
}

TEST_F(AgentsTest, SendsTheModelsOfItsPeersToTheFirstHost) {
  const auto first = hello(0), second = hello(1);
  report(first, 1, HostState::running);
  report(second, 1, HostState::running);
  report(first, 2, HostState::uploading);
  report(second, 2, HostState::uploading, "staged/2");
  EXPECT_EQ(first->messages(), "welcome:0,0 credentials state:1 state:2 peers:[staged/2]");
  report(first, 3, HostState::finished);
  EXPECT_EQ(first->sent.size(), 7u);
  EXPECT_TRUE(std::holds_alternative<wire::Goodbye>(first->sent.back()));
  // On its next connection it is dismissed again.
  EXPECT_EQ(hello(0)->messages(), "welcome:3,0 goodbye");
}

TEST_F(AgentsTest, RenewsCredentialsBeforeTheyExpire) {
  const auto link = hello(0);
  run();
  EXPECT_EQ(issued, 1);
  clock.advance(46min);
  run();
  EXPECT_EQ(issued, 2);
}

TEST_F(AgentsTest, RejectsAnAgentOfALostHost) {
  const auto link = hello(0);
  report(link, 1, HostState::running);
  launcher.kill({1, 1}, 0);
  run();
  EXPECT_EQ(link->messages(), "welcome:0,0 credentials state:1 refused");
  EXPECT_EQ(hello(0)->messages(), "refused");
}

TEST_F(AgentsTest, ReportsAllocationsAndSendsTheirOrders) {
  auto link = open();
  wire::Hello hello{wire::kVersion, {1, 1}, 1, token};
  hello.allocation = 17;
  hello.served = 3;
  send_message(link, hello);
  ASSERT_EQ(allocations.size(), 1u);
  EXPECT_EQ(allocations[0].number, 17u);
  EXPECT_EQ(allocations[0].served, 3u);
  EXPECT_EQ(allocations[0].machine, "box-1");
  EXPECT_FALSE(allocations[0].begun);
  EXPECT_EQ(allocations[0].token, token);
  EXPECT_FALSE(allocations[0].idle);
  send_message(link, wire::Idle{60s, true});
  report(link, 1, HostState::running);
  EXPECT_EQ(allocations.size(), 1u) << "its host has not ended";
  report(link, 2, HostState::finished);
  ASSERT_EQ(allocations.size(), 2u);
  ASSERT_TRUE(allocations[1].idle);
  EXPECT_EQ(allocations[1].idle->time_left, 60s);
  EXPECT_FALSE(agents->send_order(18, {1, 1}, {"next", false}));
  EXPECT_FALSE(agents->send_order(17, {2, 1}, {"next", false}));
  EXPECT_TRUE(agents->send_order(17, {1, 1}, {"next", false}));
  EXPECT_TRUE(link->messages().ends_with("order:next")) << link->messages();
  // A second agent of the host, in another allocation.
  auto second = open();
  hello.allocation = 18;
  send_message(second, hello);
  EXPECT_EQ(second->messages(), "refused");
  EXPECT_EQ(allocations.size(), 2u);
  send_message(link, wire::Idle{-1s, true});
  EXPECT_TRUE(link->closed);
}

// The link is opened after its host has ended.
TEST_F(AgentsTest, ReportsAnIdleAllocationOfAHostThatHasEnded) {
  const auto first = hello(1);
  report(first, 1, HostState::finished);
  events.closed(first, unavailable("the network failed"));
  auto link = open();
  wire::Hello again{wire::kVersion, {1, 1}, 1, token};
  again.allocation = 17;
  send_message(link, again);
  ASSERT_EQ(allocations.size(), 1u);
  EXPECT_TRUE(allocations[0].begun);
  send_message(link, wire::Idle{60s, false});
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_TRUE(allocations[1].idle);
}

TEST_F(AgentsTest, ReportsNoIdleAllocationOfALostHost) {
  auto link = open();
  wire::Hello hello{wire::kVersion, {1, 1}, 1, token};
  hello.allocation = 17;
  send_message(link, hello);
  launcher.kill({1, 1}, 1);
  run();
  send_message(link, wire::Idle{60s, false});
  report(link, 1, HostState::finished);
  EXPECT_EQ(allocations.size(), 1u);
}

TEST_F(AgentsTest, RejectsAnAgentThatItsAllocationMayNotServe) {
  allocation_refusal = "Slurm job 17 may not begin another attempt";
  auto link = open();
  wire::Hello hello{wire::kVersion, {1, 1}, 1, token};
  hello.allocation = 17;
  hello.served = 1;
  send_message(link, hello);
  EXPECT_EQ(link->messages(), "refused");
  EXPECT_FALSE(agents->send_order(17, {1, 1}, {"next", false}));
}

}  // namespace
}  // namespace trainyard::gateway

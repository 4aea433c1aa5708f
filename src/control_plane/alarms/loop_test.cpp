#include "alarms/loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "alarms/testing/plain_texts.hpp"
#include "base/testing/test_clock.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::alarms {
namespace {

constexpr Instant kNow = Instant{Duration{1'763'632'020'000 / 3'600'000 * 3'600'000}};
constexpr std::chrono::seconds kDeadline{120};
constexpr std::chrono::milliseconds kWaitBetween{10};  // between two calls of act()

struct LoopWorld {
  observe::TemporaryDirectory directory;
  TestClock clock{kNow};
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  std::unique_ptr<AlarmStore> store = std::move(*AlarmStore::open(directory.path() + "/alarms"));
  PlainTexts texts;
  Mutex mutex;
  ConditionVariable changed;
  std::vector<std::string> carried_out GUARDED_BY(mutex), events GUARDED_BY(mutex);
  Result<void> outcome = ok();
  std::string why_not;
  std::atomic<int> checks = 0;  // calls of the loop's why_not
  AlarmLoop loop{*store,
                 *metrics,
                 clock,
                 texts,
                 [this](const PendingAction& action) -> Result<void> {
                   const MutexLock lock(mutex);
                   if (action.target == kEventBus) {
                     events.push_back(action.message);
                     return ok();
                   }
                   carried_out.push_back(action.target + ": " + action.message);
                   changed.notify_all();
                   return outcome;
                 },
                 [this] {
                   ++checks;
                   return why_not;
                 }};

  static AlarmSettings settings_of(const std::string& metric) {
    AlarmSettings settings;
    settings.actions = {{"arn:ok"}, {"arn:alarm"}, {"arn:insufficient"}};
    settings.queries = {
        {.id = "m1",
         .metric = WatchedMetric{
             .name_space = "n", .name = metric, .statistic = "Average", .period = 60s}}};
    settings.watched_id = "m1";
    settings.comparison = Comparison::greater;
    settings.threshold = 5.0;
    return settings;
  }
  void add(const std::string& name, AlarmSettings settings) {
    Alarm alarm{{"r", name}, std::move(settings), clock.now(), {}};
    alarm.state.updated = alarm.state.transitioned = clock.now();
    ASSERT_OK(
        store->change([&](const Alarms&) -> Result<Change> { return Change{.stored = {alarm}}; }));
  }
  void put(const std::string& metric, double value) {
    ASSERT_OK(metrics->append({{{"r", "n", metric, {}}, observe::sample_of(clock.now(), value)}}));
  }
  State state(const std::string& name) { return store->snapshot()->at({"r", name})->state.value; }
  // Advances the clock to shortly after the end of the current minute.
  void pass_minute() {
    clock.set(Instant{clock.now().time_since_epoch() / 60s * 60s} + 62s);
    loop.evaluate(clock.now());
  }
  // Carries out the actions that are due, and waits for them. A target is busy until its last
  // action has ended.
  void act(size_t expected) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    for (bool done = false; !done;) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the action was not carried out";
      loop.act(clock.now());
      MutexLock lock(mutex);
      done = changed.wait_for(lock, kWaitBetween,
                              [&]() REQUIRES(mutex) { return carried_out.size() >= expected; });
    }
  }
  size_t pending(Duration later = 24h) {
    return store->due_actions(clock.now() + later, 100)->size();
  }
  // Waits until the pool has stored the ends of its actions.
  void settle(size_t left) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (pending() != left && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(pending(), left);
  }
};

TEST(AlarmLoop, FiresWithinOnePeriodAndRecovers) {
  LoopWorld world;
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.loop.evaluate(world.clock.now());
  EXPECT_EQ(world.state("hot"), State::insufficient_data) << "the period is not over";
  world.pass_minute();
  EXPECT_EQ(world.state("hot"), State::alarm);
  world.act(1);
  world.settle(0);
  world.put("temperature", 1);
  world.pass_minute();
  EXPECT_EQ(world.state("hot"), State::ok);
  world.act(2);
  world.settle(0);
  const MutexLock lock(world.mutex);
  EXPECT_EQ(world.carried_out,
            (std::vector<std::string>{"arn:alarm: hot alarm", "arn:ok: hot ok"}));
  EXPECT_EQ(world.events,
            (std::vector<std::string>{"hot insufficient_data -> alarm", "hot alarm -> ok"}));
  EXPECT_EQ(world.store->history({.region = "r", .alarm = "hot"})->items.size(), 4u)
      << "events add no items";
}

TEST(AlarmLoop, EvaluatesExpressions) {
  LoopWorld world;
  auto settings = LoopWorld::settings_of("errors");
  settings.queries.push_back(
      {.id = "all",
       .metric = WatchedMetric{
           .name_space = "n", .name = "requests", .statistic = "Sum", .period = 60s}});
  settings.queries.push_back({.id = "percent", .expression = "100 * m1 / all"});
  settings.watched_id = "percent";
  world.add("failing", settings);
  world.put("errors", 1);
  world.put("requests", 10);
  world.pass_minute();
  EXPECT_EQ(world.state("failing"), State::alarm);
  world.put("errors", 1);
  world.put("requests", 100);
  world.pass_minute();
  EXPECT_EQ(world.state("failing"), State::ok);
}

TEST(AlarmLoop, EvaluatesCompositesAfterTheirAlarms) {
  LoopWorld world;
  world.add("hot", LoopWorld::settings_of("temperature"));
  AlarmSettings inner{.kind = AlarmKind::composite, .rule = "ALARM(hot)"};
  AlarmSettings outer{.kind = AlarmKind::composite, .rule = "ALARM(inner) AND NOT OK(hot)"};
  outer.actions.alarm = {"arn:page"};
  world.add("inner", inner);
  world.add("a-outer", outer);
  world.loop.evaluate(world.clock.now());
  EXPECT_EQ(world.state("inner"), State::ok);
  world.put("temperature", 9);
  world.pass_minute();
  EXPECT_EQ(world.state("inner"), State::alarm);
  EXPECT_EQ(world.state("a-outer"), State::alarm) << "in the same evaluation, at any depth";
  EXPECT_EQ(world.pending(), 3u) << "of two alarms, and events";
}

// Adds composite alarms. The first has the state of `base`, each other the state of the previous.
void add_chain(LoopWorld& world, const std::string& base, const std::vector<std::string>& names) {
  Change change;
  std::string child = base;
  for (const std::string& name : names) {
    AlarmSettings settings{.kind = AlarmKind::composite, .rule = "ALARM(" + child + ")"};
    Alarm alarm{{"r", name}, std::move(settings), world.clock.now(), {}};
    alarm.state.updated = alarm.state.transitioned = world.clock.now();
    change.stored.push_back(std::move(alarm));
    child = name;
  }
  ASSERT_OK(world.store->change([&](const Alarms&) -> Result<Change> { return change; }));
}

// A long chain needs no recursion, and each alarm is evaluated once: the history has each change
// once.
TEST(AlarmLoop, EvaluatesALongChainOfCompositesAtOnce) {
  constexpr int kAlarms = 100;
  LoopWorld world;
  world.add("hot", LoopWorld::settings_of("temperature"));
  std::vector<std::string> up, down;
  for (int i = 0; i < kAlarms; ++i) {
    up.push_back("up-" + std::to_string(1000 + i));
    down.push_back("down-" + std::to_string(2000 - i));
  }
  add_chain(world, "hot", up);
  add_chain(world, "hot", down);
  world.loop.evaluate(world.clock.now());
  EXPECT_EQ(world.state(up.back()), State::ok);
  EXPECT_EQ(world.state(down.back()), State::ok);
  world.put("temperature", 9);
  world.pass_minute();
  for (const auto* names : {&up, &down})
    for (const std::string& name : *names) ASSERT_EQ(world.state(name), State::alarm) << name;
  EXPECT_EQ(world.store->history({.region = "r", .alarm = up.back()})->items.size(), 2u);
}

TEST(AlarmLoop, EvaluatesAChangedRuleAtOnce) {
  LoopWorld world;
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.add("both", {.kind = AlarmKind::composite, .rule = "ALARM(hot)"});
  world.loop.evaluate(world.clock.now());
  EXPECT_EQ(world.state("both"), State::ok);
  world.add("both", {.kind = AlarmKind::composite, .rule = "NOT ALARM(hot)"});
  world.loop.evaluate(world.clock.now());
  EXPECT_EQ(world.state("both"), State::alarm);
}

TEST(AlarmLoop, EvaluatesOtherAlarmsAfterAnInvalidOne) {
  LoopWorld world;
  auto bad = LoopWorld::settings_of("temperature");
  bad.queries[0].metric->statistic = "weird";
  world.add("a-bad", bad);
  bad.queries = {{.id = "m1", .expression = "unknown + 1"}};
  world.add("b-bad", bad);
  AlarmSettings composite{.kind = AlarmKind::composite, .rule = "not a rule"};
  world.add("c-bad", composite);
  world.add("good", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.pass_minute();
  EXPECT_EQ(world.state("good"), State::alarm);
}

TEST(AlarmLoop, RetriesFailedActionsLater) {
  LoopWorld world;
  world.outcome = unavailable("the target is unavailable");
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.pass_minute();
  world.act(1);
  const auto attempts = [&] {
    return (*world.store->due_actions(world.clock.now() + 24h, 1))[0].attempts;
  };
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (attempts() != 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_EQ(attempts(), 1);
  world.settle(1);
  EXPECT_EQ(world.pending(0s), 0u) << "not at once";
  EXPECT_EQ(world.pending(kRetryWaitMin), 1u);
  world.outcome = ok();
  world.clock.set(world.clock.now() + kRetryWaitMin);
  world.act(2);
  world.settle(0);
}

TEST(AlarmLoop, EndsActionsThatCannotSucceed) {
  LoopWorld world;
  world.outcome = not_found("topic not found");
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.pass_minute();
  world.act(1);
  world.settle(0);
  EXPECT_EQ(world.store->history({.region = "r", .kind = HistoryKind::action})->items[0].summary,
            "arn:alarm failed: topic not found");
}

TEST(AlarmLoop, DoublesTheWaitOfRetriesUpToALimit) {
  EXPECT_EQ(retry_wait(1), 1s);
  EXPECT_EQ(retry_wait(2), 2s);
  EXPECT_EQ(retry_wait(5), 16s);
  EXPECT_EQ(retry_wait(9), 256s);
  EXPECT_EQ(retry_wait(10), kRetryWaitMax);
  EXPECT_EQ(retry_wait(1'000'000), kRetryWaitMax);
}

// The sink of the first target returns only when the test ends it.
TEST(AlarmLoop, CarriesOutOtherActionsWhileATargetHangs) {
  LoopWorld world;
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::promise<void> other;
  {
    AlarmLoop loop(*world.store, *world.metrics, world.clock, world.texts,
                   [&](const PendingAction& action) -> Result<void> {
                     if (action.target == "arn:hangs")
                       released.wait();
                     else
                       other.set_value();
                     return ok();
                   });
    Change change;
    for (const char* target : {"arn:hangs", "arn:hangs", "arn:hangs", "arn:works"})
      change.actions.push_back(
          {.alarm = {"r", "a"}, .target = target, .message = "{}", .created = kNow, .due = kNow});
    ASSERT_OK(world.store->change([&](const Alarms&) -> Result<Change> { return change; }));
    loop.act(kNow);
    EXPECT_EQ(other.get_future().wait_for(kDeadline), std::future_status::ready);
    world.add("hot", LoopWorld::settings_of("temperature"));
    world.put("temperature", 9);
    world.clock.set(kNow + 62s);
    loop.evaluate(world.clock.now());
    EXPECT_EQ(world.state("hot"), State::alarm) << "alarms are evaluated meanwhile";
    release.set_value();
  }
}

TEST(AlarmLoop, DoesNothingOnAStandbyServer) {
  LoopWorld world;
  world.why_not = "another server writes";
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.clock.set(kNow + 62s);
  world.loop.start();
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (world.checks < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_GE(world.checks, 2) << "one whole iteration";
  EXPECT_EQ(world.state("hot"), State::insufficient_data);
}

TEST(AlarmLoop, ThreadEvaluatesAndActs) {
  LoopWorld world;
  world.add("hot", LoopWorld::settings_of("temperature"));
  world.put("temperature", 9);
  world.clock.set(kNow + 62s);
  world.loop.start();
  MutexLock lock(world.mutex);
  EXPECT_TRUE(world.changed.wait_for(
      lock, kDeadline, [&]() REQUIRES(world.mutex) { return !world.carried_out.empty(); }));
}

}  // namespace
}  // namespace trainyard::alarms

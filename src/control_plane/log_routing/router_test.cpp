#include "log_routing/router.hpp"

#include <zlib.h>

#include "base/json.hpp"
#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::log_routing {
namespace {

constexpr Duration kDeadline = 120s;
const std::string kRegion = "eu-west-1";

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

// A webhook that stores the received bodies, fails or hangs.
class Receiver {
 public:
  Post post() {
    return [this](const Webhook& webhook, const std::string& body) -> Result<int> {
      MutexLock lock(mutex_);
      ++calls_;
      changed_.notify_all();
      changed_.wait_for(lock, kDeadline, [&]() REQUIRES(mutex_) { return !hanging_; });
      if (status_ == 0) return unavailable("connection refused");
      if (status_ == 200) bodies_.emplace_back(webhook.name, body);
      return status_;
    };
  }
  void set(int status, bool hanging = false) {
    const MutexLock lock(mutex_);
    status_ = status;
    hanging_ = hanging;
    changed_.notify_all();
  }
  bool wait_for_calls(size_t calls) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&]() REQUIRES(mutex_) { return calls_ >= calls; });
  }
  size_t calls() {
    const MutexLock lock(mutex_);
    return calls_;
  }
  std::vector<std::pair<std::string, std::string>> bodies() {
    const MutexLock lock(mutex_);
    return bodies_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  size_t calls_ GUARDED_BY(mutex_) = 0;
  int status_ GUARDED_BY(mutex_) = 200;
  bool hanging_ GUARDED_BY(mutex_) = false;
  std::vector<std::pair<std::string, std::string>> bodies_ GUARDED_BY(mutex_);
};

struct World {
  observe::TemporaryDirectory directory;
  TestClock clock;
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  std::unique_ptr<LogRouter> router;  // set before events are appended
  std::unique_ptr<observe::Logs> logs;
  Receiver receiver;
  RouterSettings settings{.account = "123456789012",
                          .webhooks = {{"hook", "http://127.0.0.1:1/", "", ""}},
                          .delivery = {.first_pause = 1ms}};

  void start() {
    observe::LogSettings log_settings;
    log_settings.appended = [this](const auto& key, const auto& events) {
      if (router) router->enqueue(key, events);
    };
    logs = *observe::open_logs(directory.path() + "/logs", clock, log_settings);
    for (const char* group : {"g", "other"})
      ASSERT_TRUE(logs->ensure_stream({kRegion, group, "s"}));
    router = *LogRouter::start(*logs, *metrics, clock, receiver.post(), settings);
  }
  ~World() { router.reset(); }

  void put(observe::DefinitionKind kind, const std::string& name, const std::string& body) {
    ASSERT_TRUE(logs->definitions().put(kRegion, kind, {"g", name, body, clock.now()}, 100));
    ASSERT_TRUE(router->reload());
  }
  void count_errors() {
    put(observe::DefinitionKind::metric_filter, "errors",
        MetricFilter{
            .pattern = "ERROR", .metric_namespace = "N", .metric_name = "errors", .value = "1"}
            .text());
  }
  void subscribe(const std::string& target = "hook") {
    put(observe::DefinitionKind::subscription_filter, "all",
        SubscriptionFilter{.pattern = "", .target = target}.text());
  }
  void append(const std::vector<std::string>& messages, const std::string& group = "g",
              uint64_t batch = 0) {
    std::vector<observe::LogEvent> events;
    for (const auto& message : messages) events.push_back({clock.now(), {}, message});
    ASSERT_TRUE(logs->append({kRegion, group, "s"}, events, batch));
  }
  double sum() {
    EXPECT_TRUE(router->drain(kDeadline));
    double sum = 0;
    const auto points = metrics->statistics(
        {.key = {kRegion, "N", "errors", {}}, .from = clock.now() - 1h, .to = clock.now() + 1h});
    EXPECT_TRUE(points);
    for (const auto& point : *points) sum += point.sum;
    return sum;
  }
};

TEST(LogRouter, PublishesMetricsOfStoredEvents) {
  World world;
  world.start();
  world.append({"ERROR before the filter"});
  world.count_errors();
  world.append({"ERROR 1", "fine", "ERROR 2"});
  world.append({"ERROR elsewhere"}, "other");
  EXPECT_EQ(world.sum(), 2);
}

TEST(LogRouter, StoresSamplesOfOtherNamespacesWhenOneIsFull) {
  World world;
  observe::MetricSettings limits;
  limits.group_of = [](const observe::MetricKey& key) {
    return key.name_space == "full" ? key.name_space : std::string();
  };
  limits.group_series_max = 1;
  world.metrics.reset();
  world.metrics = *observe::open_metrics(world.directory.path() + "/metrics", limits);
  const observe::MetricRecord first{{kRegion, "full", "first", {}},
                                    observe::sample_of(world.clock.now(), 1)};
  ASSERT_TRUE(world.metrics->append({first}));
  world.start();
  world.put(
      observe::DefinitionKind::metric_filter, "a",
      MetricFilter{
          .pattern = "ERROR", .metric_namespace = "full", .metric_name = "second", .value = "1"}
          .text());
  world.count_errors();
  world.append({"ERROR"});
  EXPECT_EQ(world.sum(), 1);
  EXPECT_EQ(world.metrics->list(kRegion, "full", "")->size(), 1u);
}

TEST(LogRouter, CountsARepeatedBatchOnce) {
  World world;
  world.start();
  world.count_errors();
  world.append({"ERROR"}, "g", 1);
  world.append({"ERROR"}, "g", 1);
  world.append({"ERROR"}, "g", 2);
  EXPECT_EQ(world.sum(), 2);
}

TEST(LogRouter, KeepsFiltersAfterARestart) {
  World world;
  world.start();
  world.count_errors();
  world.router.reset();
  world.router = *LogRouter::start(*world.logs, *world.metrics, world.clock, world.receiver.post(),
                                   world.settings);
  world.append({"ERROR"});
  EXPECT_EQ(world.sum(), 1);
}

TEST(LogRouter, IgnoresInvalidFilters) {
  World world;
  world.start();
  world.put(observe::DefinitionKind::metric_filter, "a", "not JSON");
  world.put(observe::DefinitionKind::metric_filter, "b",
            MetricFilter{.pattern = "{ $.a", .value = "1"}.text());
  world.subscribe("a webhook that the configuration has no longer");
  world.count_errors();
  world.append({"ERROR"});
  EXPECT_EQ(world.sum(), 1);
}

TEST(LogRouter, StopsPublishingForARemovedFilter) {
  World world;
  world.start();
  world.count_errors();
  ASSERT_TRUE(world.logs->delete_group(kRegion, "g"));
  ASSERT_TRUE(world.router->reload());
  ASSERT_TRUE(world.logs->ensure_stream({kRegion, "g", "s"}));
  world.append({"ERROR"});
  EXPECT_EQ(world.sum(), 0);
}

TEST(LogRouter, SendsTheEnvelopeOfAws) {
  World world;
  world.start();
  world.subscribe();
  world.append({"one \x1b[2J<b>", "two"});
  ASSERT_TRUE(world.router->drain(kDeadline));
  const auto bodies = world.receiver.bodies();
  ASSERT_EQ(bodies.size(), 1u);
  EXPECT_EQ(bodies[0].first, "hook");
  const auto body = parse_json(bodies[0].second);
  ASSERT_TRUE(body);
  const auto document =
      parse_json(gunzip(*from_base64(body->at("awslogs").at("data").get<std::string>())));
  ASSERT_TRUE(document);
  EXPECT_EQ(document->at("messageType"), "DATA_MESSAGE");
  EXPECT_EQ(document->at("owner"), "123456789012");
  EXPECT_EQ(document->at("logGroup"), "g");
  EXPECT_EQ(document->at("logStream"), "s");
  EXPECT_EQ(document->at("subscriptionFilters"), Json::array({"all"}));
  ASSERT_EQ(document->at("logEvents").size(), 2u);
  EXPECT_EQ(document->at("logEvents")[0].at("message"), "one \x1b[2J<b>");
  EXPECT_EQ(document->at("logEvents")[0].at("timestamp"), to_milliseconds(world.clock.now()));
  EXPECT_NE(document->at("logEvents")[0].at("id"), document->at("logEvents")[1].at("id"));
}

TEST(LogRouter, RetriesAFailingWebhookUpToALimit) {
  World world;
  world.start();
  world.subscribe();
  world.count_errors();
  world.receiver.set(503);
  world.append({"ERROR"});
  ASSERT_TRUE(world.router->drain(kDeadline));
  EXPECT_EQ(world.receiver.calls(), 4u);
  world.receiver.set(0);
  world.append({"ERROR"});
  ASSERT_TRUE(world.router->drain(kDeadline));
  EXPECT_EQ(world.receiver.calls(), 8u);
  world.receiver.set(403);
  world.append({"ERROR"});
  ASSERT_TRUE(world.router->drain(kDeadline));
  EXPECT_EQ(world.receiver.calls(), 9u) << "a client error is not retried";
  world.receiver.set(200);
  world.append({"ERROR"});
  ASSERT_TRUE(world.router->drain(kDeadline));
  EXPECT_EQ(world.receiver.bodies().size(), 1u);
  EXPECT_EQ(world.sum(), 4);
}

TEST(LogRouter, PublishesMetricsWhileAWebhookHangs) {
  World world;
  world.settings.delivery.queue_bytes_max = 2'000;
  world.start();
  world.subscribe();
  world.count_errors();
  world.receiver.set(200, true);
  for (int i = 0; i < 100; ++i) world.append({"ERROR " + std::string(100, 'x')});
  ASSERT_TRUE(world.receiver.wait_for_calls(1));
  double sum = 0;
  for (int i = 0; i < 6'000 && sum < 100; ++i) {  // until the metrics are published
    if (world.router->counts().events < 100) {
      std::this_thread::sleep_for(10ms);
      continue;
    }
    const auto points = world.metrics->statistics({.key = {kRegion, "N", "errors", {}},
                                                   .from = world.clock.now() - 1h,
                                                   .to = world.clock.now() + 1h});
    ASSERT_TRUE(points);
    sum = points->empty() ? 0 : (*points)[0].sum;
  }
  EXPECT_EQ(sum, 100);
  world.receiver.set(200);
  ASSERT_TRUE(world.router->drain(kDeadline));
  EXPECT_LT(world.receiver.bodies().size(), 100u);
  EXPECT_GE(world.receiver.bodies().size(), 1u);
}

TEST(LogRouter, CountsEventsThatDoNotFitIntoTheQueue) {
  World world;
  world.settings.queue_bytes_max = 100;
  world.start();
  world.count_errors();
  world.append({std::string(1'000, 'x'), "y"});
  EXPECT_EQ(world.router->counts().dropped, 2u);
}

}  // namespace
}  // namespace trainyard::log_routing

#include "log_routing/deliveries.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/json.hpp"
#include "base/text.hpp"
#include "log_routing/testing/delivery_world.hpp"
#include "sqlite/file_watch.hpp"

namespace trainyard::log_routing {
namespace {

using Messages = std::vector<std::string>;

TEST(Deliveries, WriteObjectsInTheLayoutOfAws) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  world.append({"before the delivery"});
  world.clock.advance(1s);
  const auto id = world.deliver("arn:aws:s3:::bucket/logs");
  ASSERT_OK(id);
  world.append({"one", "two\n", "<b>\x1b[2J"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const auto texts = world.texts();
  ASSERT_EQ(texts.size(), 1u);
  const auto& [key, text] = *texts.begin();
  const std::string folder = "logs/AWSLogs/123456789012/logs/eu-west-1/2025/11/20/";
  EXPECT_TRUE(key.starts_with(folder + "123456789012_logs_eu-west-1_" + *id + "_20251120T0945Z_"))
      << key;
  EXPECT_TRUE(key.ends_with(".log.gz")) << key;
  EXPECT_EQ(text, "one\ntwo\n<b>\x1b[2J\n");
  world.append({"three"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.texts().size(), 2u);
  EXPECT_EQ(world.all_text().find("before"), std::string::npos);
}

TEST(Deliveries, WriteFieldsInBothFormats) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  const DeliveryOptions options{.fields = {"path", "ms", "log_stream"},
                                .delimiter = "|",
                                .suffix = "AWSLogs/{account-id}/web/{yyyy}",
                                .hive_path = true};
  ASSERT_OK(world.deliver("arn:aws:s3:::bucket", options));
  world.append({R"({"path": "/a|b\nc", "ms": 12})", "text"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const auto texts = world.texts();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(texts.begin()->first.starts_with(
      "AWSLogs/aws-account-id=123456789012/web/year=2025/123456789012_logs_"))
      << texts.begin()->first;
  EXPECT_EQ(texts.begin()->second, "/a b c|12|s\n-|-|s\n");
  ASSERT_OK(
      world.deliver(kGroupArns + "to:*", {.fields = {"ms", "message"}}, DeliveryFormat::json));
  world.append({R"({"ms": 1.5, "message": "own"})", "text"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const Messages found = world.messages("to");
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[found.size() - 2], R"({"ms":1.5,"message":"own"})");
  EXPECT_EQ(found[found.size() - 1], R"({"message":"text"})");
}

TEST(Deliveries, SendEventsToLogGroupsAndWebhooks) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.deliver(kGroupArns + "to"));
  ASSERT_OK(world.deliver(kStreamArn));
  ASSERT_OK(world.logs->ensure_stream({kDeliveryRegion, "g", "new"}));
  world.append({"one"}, "new");
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to", "new"), Messages{"one"});
  const MutexLock lock(world.mutex);
  ASSERT_EQ(world.bodies.size(), 1u);
  const auto body = parse_json(world.bodies[0]);
  ASSERT_OK(body);
  ASSERT_EQ(body->at("records").size(), 1u);
  EXPECT_EQ(*from_base64(body->at("records")[0].at("data").get<std::string>()), "one\n");
}

// Returns when the condition is true, or after the deadline; the caller asserts the condition.
void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kDeliveryDeadline;
  while (!condition() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(10ms);
}

TEST(Deliveries, RunWhileAWebhookFails) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.deliver(kGroupArns + "to"));
  ASSERT_OK(world.deliver(kStreamArn));
  world.status = 503;
  world.append({"one", "two"});
  wait_until([&] { return world.messages("to").size() == 2; });
  EXPECT_EQ(world.messages("to"), (Messages{"one", "two"}));
  EXPECT_FALSE(world.all->drain(10ms));
  world.status = 200;
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const MutexLock lock(world.mutex);
  ASSERT_EQ(world.bodies.size(), 1u);
  EXPECT_EQ(parse_json(world.bodies[0])->at("records").size(), 2u);
}

TEST(Deliveries, ContinueAfterARestart) {
  const observe::TemporaryDirectory directory;
  {
    DeliveryWorld world(directory.path());
    world.start();
    ASSERT_OK(world.deliver("arn:aws:s3:::bucket"));
    world.append({"one"});
    ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  }
  {
    DeliveryWorld world(directory.path());
    ASSERT_OK(world.open());
    world.all.reset();
    world.append({"two"});  // stored while no delivery runs
  }
  DeliveryWorld world(directory.path());
  ASSERT_OK(world.open());
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.texts().size(), 2u);
  world.append({"three"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  Messages found;
  for (const auto& [key, text] : world.texts()) found.push_back(text);
  std::ranges::sort(found);
  EXPECT_EQ(found, (Messages{"one\n", "three\n", "two\n"}));
}

TEST(Deliveries, ReadARecreatedStreamFromItsBeginning) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.deliver(kGroupArns + "to"));
  world.append({"one"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  ASSERT_OK(world.logs->delete_stream({kDeliveryRegion, "g", "s"}));
  world.clock.advance(1s);
  ASSERT_OK(world.logs->ensure_stream({kDeliveryRegion, "g", "s"}));
  world.append({"two", "three"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to"), (Messages{"one", "two", "three"}));
}

TEST(Deliveries, LeaveNoPositionsAfterRemoval) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  const auto id = world.deliver(kGroupArns + "to");
  ASSERT_OK(id);
  world.append({"one"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  ASSERT_OK(world.all->remove(kDeliveryRegion, *id));
  EXPECT_EQ(world.all->remove(kDeliveryRegion, *id).error().kind, Kind::not_found);
  world.append({"two"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to"), Messages{"one"});
  EXPECT_TRUE(world.logs->definitions().all(observe::DefinitionKind::delivery_position)->empty());
}

// -- runs

using Posts = std::vector<Messages>;

// Waits until the webhook has received this number of requests.
void wait_for_posts(DeliveryWorld& world, size_t count) {
  wait_until([&] { return world.posts().size() >= count; });
  ASSERT_GE(world.posts().size(), count);
}

TEST(Deliveries, EndARunAtTheLastEventOfItsStart) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.logs->ensure_stream({kDeliveryRegion, "g", "t"}));
  world.append({"s"}, "s");
  world.append({"t"}, "t");
  int left = 5;
  world.on_post = [&] {
    if (left-- > 0) world.append({"later"}, "s");
  };
  ASSERT_OK(world.deliver(kStreamArn));  // its first run reads all streams
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const Posts posts = world.posts();
  ASSERT_GE(posts.size(), 3u);
  EXPECT_EQ(posts[0], Messages{"s\n"});
  EXPECT_EQ(posts[1], Messages{"t\n"});
}

TEST(Deliveries, RunTheLeastRecentDeliveryNext) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.deliver(kStreamArn, {}, {}, "g"));
  ASSERT_OK(world.deliver(kStreamArn, {}, {}, "to"));
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  int left = 10;
  world.on_post = [&] {
    if (left-- <= 0) return;
    world.append({"g"}, "s", "g");
    world.append({"to"}, "s", "to");
  };
  world.append({"first"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const Posts posts = world.posts();
  ASSERT_GE(posts.size(), 10u);
  EXPECT_EQ(posts[0], Messages{"first\n"});
  for (size_t i = 1; i < 10; ++i) EXPECT_EQ(posts[i].front(), i % 2 == 1 ? "to\n" : "g\n") << i;
}

TEST(Deliveries, StopARunWhenItsDeliveryIsRemoved) {
  const observe::TemporaryDirectory directory;
  std::string id;
  std::atomic<bool> removed = false;
  DeliveryWorld world(directory.path());
  world.delivery_settings.post_bytes = 1;  // one event
  world.start();
  world.append({"one", "two", "three"});
  world.on_post = [&] {
    if (removed) return;
    id = world.all->catalogue().deliveries(kDeliveryRegion)->at(0).first;
    EXPECT_TRUE(world.all->remove(kDeliveryRegion, id));
    removed = true;
  };
  ASSERT_OK(world.deliver(kStreamArn, {}, {}, "g"));
  wait_until([&] { return removed.load(); });
  ASSERT_TRUE(removed);
  // One thread runs both deliveries, the second after the first.
  world.append({"other"}, "s", "to");
  ASSERT_OK(world.deliver(kStreamArn, {}, {}, "to"));
  wait_for_posts(world, 2);
  EXPECT_EQ(world.posts(), (Posts{{"one\n"}, {"other\n"}}));
  const auto positions =
      world.logs->definitions().list(kDeliveryRegion, observe::DefinitionKind::delivery_position);
  ASSERT_OK(positions);
  for (const auto& each : *positions) EXPECT_FALSE(each.name.starts_with(id)) << each.name;
}

TEST(Deliveries, StopARunWhenItsDeliveryIsChanged) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.delivery_settings.post_bytes = 1;  // one event
  world.start();
  world.append({"one", "two", "three"});
  bool changed = false;
  world.on_post = [&] {
    if (std::exchange(changed, true)) return;
    auto& catalogue = world.all->catalogue();
    const std::string id = catalogue.deliveries(kDeliveryRegion)->at(0).first;
    ASSERT_OK(catalogue.update(kDeliveryRegion, id, [](DeliveryOptions& options) {
      options.fields = {"log_group", "message"};
    }));
    ASSERT_OK(world.all->reload());
  };
  ASSERT_OK(world.deliver(kStreamArn));
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.posts(), (Posts{{"one\n"}, {"g\ttwo\n"}, {"g\tthree\n"}}));
}

TEST(Deliveries, SplitPagesWhoseRecordsAreTooLong) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.delivery_settings.post_bytes = 1000;
  world.start();
  // In JSON these messages are six times as long, and a request has 4,000 bytes.
  world.append(Messages(3, std::string(280, '\x01')));
  ASSERT_OK(world.deliver(kStreamArn, {.fields = {"message"}}, DeliveryFormat::json));
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const Posts posts = world.posts();
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(posts[0].size(), 2u);
  EXPECT_EQ(posts[1].size(), 1u);
}

// Replaces bytes in the segments of the logs.
void damage(const std::string& directory, const std::string& text) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::recursive_directory_iterator(directory + "/logs")) {
    if (entry.path().extension() != ".log") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const size_t at = bytes.find(text);
    if (at == std::string::npos) continue;
    file.clear();
    file.seekp(std::streamoff(at));
    file << std::string(text.size(), '?');
  }
}

TEST(Deliveries, DeliverOtherStreamsAfterADamagedOne) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  for (const char* stream : {"a", "b"})
    ASSERT_OK(world.logs->ensure_stream({kDeliveryRegion, "g", stream}));
  ASSERT_OK(world.deliver(kStreamArn));
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  world.all.reset();  // a running delivery may have read the event before it is damaged
  world.append({"broken event"}, "a");
  damage(directory.path(), "broken event");
  world.append({"whole event"}, "b");
  ASSERT_OK(world.start_deliveries());
  wait_for_posts(world, 1);
  EXPECT_EQ(world.posts(), Posts{{"whole event\n"}});
}

TEST(Deliveries, KeepRunningWhenTheirRecordsCannotBeRead) {
  const observe::TemporaryDirectory directory;
  DeliveryWorld world(directory.path());
  world.start();
  ASSERT_OK(world.deliver(kGroupArns + "to"));
  auto& definitions = world.logs->definitions();
  using observe::DefinitionKind;
  const auto source = definitions.find(kDeliveryRegion, DefinitionKind::delivery_source, "", "g");
  ASSERT_OK(source);
  ASSERT_OK(
      definitions.put(kDeliveryRegion, DefinitionKind::delivery_source, {"", "g", "no JSON"}, 10));
  EXPECT_FALSE(world.all->reload());
  world.append({"one"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to"), Messages{"one"});
  ASSERT_OK(definitions.remove(kDeliveryRegion, DefinitionKind::delivery_source, "", "g"));
  ASSERT_OK(world.all->reload());
  world.append({"two"});
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to"), Messages{"one"}) << "its source is missing";
  ASSERT_OK(definitions.put(kDeliveryRegion, DefinitionKind::delivery_source, **source, 10));
  ASSERT_OK(world.all->reload());
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  EXPECT_EQ(world.messages("to"), (Messages{"one", "two"}));
}

// Each disk operation of the objects fails once: no event is lost, and none is delivered twice.
TEST(Deliveries, LoseNothingAfterADiskErrorOfTheObjects) {
  for (uint64_t nth = 1;; ++nth) {
    const observe::TemporaryDirectory directory;
    NthFileFault fault(nth, ENOSPC);
    DeliveryWorld world(directory.path());
    world.object_faults = &fault;
    world.start();
    ASSERT_OK(world.deliver("arn:aws:s3:::bucket"));
    fault.arm();
    world.append({"one"});
    ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
    EXPECT_EQ(world.all_text(), "one\n") << nth;
    if (!fault.struck()) return;
    ASSERT_LT(nth, 100u);
  }
}

// Each disk operation of the definitions and positions fails once.
TEST(Deliveries, LoseNothingAfterADiskErrorOfThePositions) {
  for (uint64_t nth = 1;; ++nth) {
    const observe::TemporaryDirectory directory;
    NthFileFault fault(nth, EIO);
    sqlite::FileWatch watch(&fault);
    DeliveryWorld world(directory.path());
    world.log_files = watch.name();
    world.start();
    ASSERT_OK(world.deliver("arn:aws:s3:::bucket"));
    fault.arm();
    world.append({"one"});
    ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
    EXPECT_EQ(world.all_text(), "one\n") << nth;
    world.all.reset();
    if (!fault.struck()) return;
    ASSERT_LT(nth, 100u);
  }
}

}  // namespace
}  // namespace trainyard::log_routing

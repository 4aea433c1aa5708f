#include "insights/queries.hpp"

#include <cstdlib>

#include "base/testing/test_clock.hpp"
#include "insights/testing/test_pipeline.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::insights {
namespace {

constexpr Duration kDeadline = 120s;

// Logs in which a search of the group "held" waits until the test lets it continue.
class GatedLogs final : public observe::Logs {
 public:
  ~GatedLogs() override { open(); }
  void open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Waits until this number of searches is waiting.
  bool wait_for(size_t waiting) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, kDeadline,
                             [&]() REQUIRES(mutex_) { return waiting_ >= waiting; });
  }
  class OnePage final : public observe::LogScan {
    Result<observe::ScanPage> next() override {
      observe::ScanPage page{.ended = true};
      page.events.push_back({"s", {from_milliseconds(kStart), {}, "m"}, "", 0});
      return page;
    }
  };
  Result<std::unique_ptr<observe::LogScan>> scan(const std::string&, const std::string& group,
                                                 const observe::ScanQuery&) override {
    MutexLock lock(mutex_);
    if (group == "held") {
      ++waiting_;
      changed_.notify_all();
      changed_.wait_for(lock, kDeadline, [&]() REQUIRES(mutex_) { return open_; });
    }
    return std::unique_ptr<observe::LogScan>(std::make_unique<OnePage>());
  }

  // The other functions are not used.
  using Key = observe::StreamKey;
  using Text = const std::string&;
  Result<observe::FilterPage> filter(Text, Text, const observe::FilterQuery&) override {
    return invalid("unused");
  }
  Result<void> create_group(Text, Text, const observe::LogGroupSettings&) override { return ok(); }
  Result<observe::LogGroupInfo> group(Text, Text) override { return invalid("unused"); }
  Result<void> change_group(Text, Text, const ChangeGroup&) override { return ok(); }
  Result<void> delete_group(Text, Text) override { return ok(); }
  Result<void> delete_stream(const Key&) override { return ok(); }
  observe::LogDefinitions& definitions() override { std::abort(); }
  Result<void> create_stream(const Key&) override { return ok(); }
  Result<void> ensure_stream(const Key&) override { return ok(); }
  Result<void> append(const Key&, const std::vector<observe::LogEvent>&, uint64_t) override {
    return ok();
  }
  Result<uint64_t> stored_bytes(const Key&) override { return invalid("unused"); }
  Result<uint64_t> last_batch(const Key&) override { return invalid("unused"); }
  Result<observe::LogPage> read(const Key&, const observe::ReadQuery&) override {
    return invalid("unused");
  }
  Result<std::vector<observe::LogStreamInfo>> streams(Text, Text, Text) override {
    return invalid("unused");
  }
  Result<std::vector<observe::LogGroupInfo>> groups(Text, Text) override {
    return invalid("unused");
  }
  Result<void> retire(Instant) override { return ok(); }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool open_ GUARDED_BY(mutex_) = false;
  size_t waiting_ GUARDED_BY(mutex_) = 0;
};

struct World {
  observe::TemporaryDirectory directory;
  TestClock clock{from_milliseconds(kStart)};
  SeededRandom random{1};
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path(), clock);

  void put(const std::string& group, const std::string& stream,
           const std::vector<std::pair<int64_t, std::string>>& messages) {
    ASSERT_TRUE(logs->ensure_stream({"eu-west-1", group, stream}));
    std::vector<observe::LogEvent> events;
    for (const auto& [second, message] : messages)
      events.push_back({from_milliseconds(kStart + second * 1000), {}, message});
    ASSERT_TRUE(logs->append({"eu-west-1", group, stream}, events));
  }
  QueryRequest request(const std::string& text, std::vector<std::string> groups = {"g"},
                       const std::string& principal = "ann") {
    return {.region = "eu-west-1",
            .account = "123456789012",
            .principal = principal,
            .principal_arn = "",
            .groups = std::move(groups),
            .text = text,
            .query = std::make_shared<const Query>(parsed(text)),
            .from = from_milliseconds(kStart),
            .to = from_milliseconds(kStart + 3600'000)};
  }
};

QueryReport ended(Queries& queries, const std::string& id) {
  queries.wait(id, kDeadline);
  const auto report = queries.find(id);
  EXPECT_TRUE(report);
  return report.value_or(QueryReport());
}

TEST(Queries, ReadStreamsAndGroupsInOrderOfTime) {
  World world;
  world.put("g", "a", {{0, "1"}, {2, "3"}});
  world.put("g", "b", {{1, "2"}, {4, "5"}});
  world.put("h", "c", {{3, "4"}, {3600, "6"}, {3601, "late"}});
  Queries queries(*world.logs, world.clock, world.random);
  const auto id = queries.start(world.request("fields @message", {"g", "h"}));
  ASSERT_TRUE(id);
  const auto report = ended(queries, *id);
  EXPECT_EQ(report.state, QueryState::complete);
  ASSERT_TRUE(report.rows);
  EXPECT_EQ(shown(*report.rows),
            "@message=1; @message=2; @message=3; @message=4; @message=5; @message=6");
  EXPECT_EQ(report.statistics.scanned, 6u);
  EXPECT_EQ(report.statistics.matched, 6u);
  EXPECT_EQ(report.statistics.scanned_bytes, 6u * 27);
}

TEST(Queries, CountEventsThatTheirFiltersReject) {
  World world;
  world.put("g", "a", {{0, "needle"}, {2, "hay"}});
  world.put("h", "b", {{1, "hay"}, {4, "a needle"}, {3601, "a late needle"}});
  Queries queries(*world.logs, world.clock, world.random);
  const auto report =
      ended(queries, *queries.start(world.request("filter @message like /needle/", {"g", "h"})));
  ASSERT_TRUE(report.rows);
  EXPECT_EQ(report.rows->size(), 2u);
  EXPECT_EQ(report.statistics.scanned, 4u);
  EXPECT_EQ(report.statistics.matched, 2u);
  EXPECT_EQ(report.statistics.scanned_bytes, 6u + 3 + 3 + 8 + 4 * 26);
}

TEST(Queries, FindEventsByPointers) {
  World world;
  world.put("g", "a", {{0, "1"}, {2, "3"}});
  world.put("g", "b", {{1, "2"}});
  Queries queries(*world.logs, world.clock, world.random);
  const auto report = ended(queries, *queries.start(world.request("fields @message")));
  ASSERT_TRUE(report.rows);
  for (const ResultRow& row : *report.rows) {
    const auto event = find_record(*world.logs, "eu-west-1", "123456789012", row.back().second);
    ASSERT_TRUE(event) << row.back().second;
    EXPECT_EQ(event->message, row.front().second);
  }
  for (const std::string pointer : {"", "x", "W10=", "WyJnIiwiYSIsMV0=", "WyJnIiwibm9uZSIsMF0="})
    EXPECT_FALSE(find_record(*world.logs, "eu-west-1", "123456789012", pointer)) << pointer;
  EXPECT_FALSE(
      find_record(*world.logs, "us-east-1", "123456789012", report.rows->front().back().second));
}

TEST(Queries, FailForAMissingGroup) {
  World world;
  Queries queries(*world.logs, world.clock, world.random);
  const auto report = ended(queries, *queries.start(world.request("fields @message", {"none"})));
  EXPECT_EQ(report.state, QueryState::failed);
  EXPECT_FALSE(report.why.empty());
}

TEST(Queries, FailBeyondTheirLimits) {
  World world;
  world.put("g", "a", {{0, "1"}, {1, "2"}, {2, "3"}});
  Queries queries(*world.logs, world.clock, world.random, {.scanned_bytes_max = 60});
  auto request = world.request("stats count(*)");
  auto report = ended(queries, *queries.start(request));
  EXPECT_EQ(report.state, QueryState::failed);
  EXPECT_NE(report.why.find("reads more than the limit of 60 B"), std::string::npos) << report.why;
  Queries rows(*world.logs, world.clock, world.random);
  request = world.request("fields @message");
  request.rows_max = 2;
  report = ended(rows, *rows.start(request));
  ASSERT_TRUE(report.rows);
  EXPECT_EQ(report.rows->size(), 2u);
}

TEST(Queries, KeepResultsForAnHour) {
  World world;
  world.put("g", "a", {{0, "1"}});
  Queries queries(*world.logs, world.clock, world.random);
  const auto id = *queries.start(world.request("fields @message"));
  EXPECT_EQ(ended(queries, id).state, QueryState::complete);
  EXPECT_EQ(queries.list("eu-west-1").size(), 1u);
  EXPECT_TRUE(queries.list("us-east-1").empty());
  const auto stopped = queries.stop(id);
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(*stopped);
  world.clock.advance(61min);
  EXPECT_FALSE(queries.find(id));
  EXPECT_TRUE(queries.list("eu-west-1").empty());
  EXPECT_FALSE(queries.stop(id));
}

TEST(Queries, OfOnePrincipalDoNotBlockOthers) {
  World world;
  GatedLogs logs;
  Queries queries(logs, world.clock, world.random, {.threads = 2, .queries_per_principal_max = 5});
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    const auto id = queries.start(world.request("stats count(*)", {"held"}));
    ASSERT_TRUE(id);
    ids.push_back(*id);
  }
  const auto refused = queries.start(world.request("stats count(*)", {"held"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  ASSERT_TRUE(logs.wait_for(1));
  // One thread stays free for other principals.
  const auto other = queries.start(world.request("stats count(*)", {"free"}, "bob"));
  ASSERT_TRUE(other);
  EXPECT_EQ(ended(queries, *other).state, QueryState::complete);
  EXPECT_EQ(queries.find(ids[0])->state, QueryState::running);
  EXPECT_EQ(queries.find(ids[1])->state, QueryState::scheduled);
  logs.open();
  for (const auto& id : ids) EXPECT_EQ(ended(queries, id).state, QueryState::complete);
}

TEST(Queries, CanBeStoppedWhileWaitingAndRunning) {
  World world;
  GatedLogs logs;
  Queries queries(logs, world.clock, world.random);
  const auto running = *queries.start(world.request("stats count(*)", {"held"}));
  ASSERT_TRUE(logs.wait_for(1));
  const auto waiting = *queries.start(world.request("stats count(*)", {"held"}));
  for (const auto& id : {waiting, running}) {
    const auto stopped = queries.stop(id);
    ASSERT_TRUE(stopped);
    EXPECT_TRUE(*stopped);
    EXPECT_EQ(queries.find(id)->state, QueryState::cancelled);
    EXPECT_FALSE(*queries.stop(id));
  }
  logs.open();
  const auto next = *queries.start(world.request("stats count(*)", {"free"}));
  EXPECT_EQ(ended(queries, next).state, QueryState::complete);
  EXPECT_EQ(queries.find(running)->state, QueryState::cancelled);
}

TEST(Queries, TimeOut) {
  World world;
  GatedLogs logs;
  Queries queries(logs, world.clock, world.random);
  const auto id = *queries.start(world.request("stats count(*)", {"held"}));
  ASSERT_TRUE(logs.wait_for(1));
  world.clock.advance(20min);
  logs.open();
  EXPECT_EQ(ended(queries, id).state, QueryState::timed_out);
}

TEST(Queries, EndWithTheServer) {
  World world;
  auto logs = std::make_unique<GatedLogs>();
  auto queries = std::make_unique<Queries>(*logs, world.clock, world.random);
  ASSERT_TRUE(queries->start(world.request("stats count(*)", {"held"})));
  ASSERT_TRUE(queries->start(world.request("stats count(*)", {"held"}, "bob")));
  ASSERT_TRUE(logs->wait_for(2));
  logs->open();
  queries.reset();
}

}  // namespace
}  // namespace trainyard::insights

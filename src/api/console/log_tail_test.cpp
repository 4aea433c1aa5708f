#include "console/log_tail.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/testing/test_clock.hpp"
#include "os/temporary_directory.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api::console {
namespace {

const Instant kStart = from_milliseconds(1'795'167'900'000);

struct Tail : ::testing::Test {
  TestClock clock{kStart};
  os::TemporaryDirectory directory;
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path() + "/logs", clock);
  std::set<std::string> forbidden;
  LogTail tail{*logs, [this](const std::string&, const std::string& stream) {
                 return !forbidden.contains(stream);
               }};
  domain::Job job = make_job();

  static domain::Job make_job() {
    domain::Job out;
    out.number = 1;
    out.key = {"eu-west-1", "mnist-1"};
    out.spec.groups.push_back({"homogeneousCluster", "ml.m5.large", 2});
    out.attempts.push_back({.number = 1, .started = kStart});
    return out;
  }
  observe::StreamKey key(domain::HostIndex host, size_t attempt = 0) const {
    return {job.key.region, std::string(reconcile::log_group_of(job, host)),
            reconcile::log_stream_of(job, job.attempts[attempt], host)};
  }
  void print(domain::HostIndex host, const std::vector<std::string>& lines, Duration at = 0ms,
             size_t attempt = 0) {
    ASSERT_TRUE(logs->ensure_stream(key(host, attempt)));
    std::vector<observe::LogEvent> events;
    for (const std::string& line : lines) events.push_back({kStart + at, {}, line});
    ASSERT_TRUE(logs->append(key(host, attempt), events));
  }
  std::vector<std::string> round() {
    const auto lines = tail.round(job);
    EXPECT_TRUE(lines);
    std::vector<std::string> out;
    for (const TailLine& line : *lines) out.push_back(line.host + ": " + line.text);
    return out;
  }
};
using Lines = std::vector<std::string>;

TEST_F(Tail, WaitsForStreamsThatDoNotExistYet) {
  EXPECT_EQ(round(), Lines{});
  print(0, {"begin"});
  EXPECT_EQ(round(), Lines{"algo-1: begin"});
}

TEST_F(Tail, MergesHostsByTimeAndReadsEachLineOnce) {
  print(0, {"one"}, 1s);
  print(1, {"two"}, 2s);
  print(0, {"three"}, 3s);
  EXPECT_EQ(round(), (Lines{"algo-1: one", "algo-2: two", "algo-1: three"}));
  EXPECT_EQ(round(), Lines{});
  print(1, {"four"}, 4s);
  EXPECT_EQ(round(), Lines{"algo-2: four"});
}

TEST_F(Tail, BeginsWithTheLastLinesOfALongLog) {
  Lines lines;
  for (size_t i = 0; i < LogTail::kFirstLines + 10; ++i) lines.push_back(std::to_string(i));
  print(0, lines);
  const Lines first = round();
  ASSERT_EQ(first.size(), LogTail::kFirstLines);
  EXPECT_EQ(first.front(), "algo-1: 10");
  EXPECT_EQ(first.back(), "algo-1: " + lines.back());
}

TEST_F(Tail, LimitsTheLinesOfEachRound) {
  print(0, {"begin"});
  round();
  print(0, Lines(LogTail::kRoundLines + 5, "x"));
  print(1, {"other"});
  EXPECT_EQ(round().size(), LogTail::kRoundLines);
  EXPECT_EQ(round().size(), 6u);
  EXPECT_EQ(round(), Lines{});
}

TEST_F(Tail, NamesTheAttemptOfEarlierLines) {
  print(0, {"first"}, 1s);
  job.attempts.push_back({.number = 2, .started = kStart + 1min});
  print(0, {"second"}, 2min, 1);
  EXPECT_EQ(round(), (Lines{"algo-1 (1): first", "algo-1: second"}));
}

TEST_F(Tail, LeavesOutStreamsThatTheReaderMayNotRead) {
  print(0, {"mine"});
  print(1, {"secret"});
  forbidden.insert(key(1).stream);
  EXPECT_EQ(round(), Lines{"algo-1: mine"});
  EXPECT_TRUE(tail.denied());
  forbidden.clear();
  EXPECT_EQ(round(), Lines{"algo-2: secret"});
  EXPECT_FALSE(tail.denied());
}

TEST_F(Tail, ReportsTheRangeReadOfEachStream) {
  print(0, std::vector<std::string>(LogTail::kFirstLines + 3, "x"));
  round();
  ASSERT_EQ(tail.ranges().size(), 1u);
  const TailRange first = tail.ranges()[0];
  EXPECT_EQ(first.host, "algo-1");
  EXPECT_EQ(first.stream, key(0).stream);
  observe::ReadQuery before;
  before.position = first.begin;
  before.forward = false;
  EXPECT_EQ(logs->read(key(0), before)->events.size(), 3u) << "the lines that were left out";
  round();
  EXPECT_TRUE(tail.ranges().empty()) << "nothing is new";
  print(0, {"y"});
  round();
  ASSERT_EQ(tail.ranges().size(), 1u);
  EXPECT_EQ(tail.ranges()[0].begin, first.end);
}

}  // namespace
}  // namespace trainyard::api::console

// Kills a child with SIGKILL at random times. The child appends, and acknowledges appends through a
// pipe. Each acknowledged append must be stored once and completely.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

constexpr int kWriters = 3;
constexpr int kKills = 20;
constexpr int kPollMilliseconds = 20'000;  // without output within this time a child has failed

LogSettings small_files() { return {.segment_bytes = 20'000, .block_bytes = 1000}; }

// Returns the lines of a batch. They depend on the writer and the number, so a repeated batch
// differs from a new one.
std::vector<LogEvent> lines_of(int writer, uint64_t batch) {
  std::vector<LogEvent> events;
  const size_t count = 1 + batch % 7;
  for (size_t i = 0; i < count; ++i)
    events.push_back({from_milliseconds(int64_t(batch)), Instant{},
                      std::to_string(writer) + ":" + std::to_string(batch) + ":" +
                          std::to_string(i) + "/" + std::to_string(count) +
                          std::string(batch * 37 % 300, '.')});
  return events;
}

StreamKey key_of(int writer) { return {"r", "g", "writer/" + std::to_string(writer)}; }
const MetricKey kCount{"r", "n", "count", {}};

struct Acknowledged {
  int writer;
  uint64_t batch;
};

// Runs in the child and never returns. Each writer acts as an agent: it reads the number of the
// last batch, and continues by repeating that batch.
[[noreturn]] void run_child(const std::string& directory, int pipe) {
  TestClock clock;
  auto logs = open_logs(directory + "/logs", clock, small_files());
  auto metrics = open_metrics(directory + "/metrics");
  if (!logs || !metrics) ::_exit(3);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer)
    threads.emplace_back([&, writer] {
      if (!(*logs)->ensure_stream(key_of(writer))) ::_exit(4);
      const auto last = (*logs)->last_batch(key_of(writer));
      if (!last) ::_exit(5);
      for (uint64_t batch = std::max<uint64_t>(1, *last);; ++batch) {
        if (!(*metrics)->append_batch("writer" + std::to_string(writer), batch,
                                      {{kCount, sample_of(clock.now(), 1)}}))
          ::_exit(6);
        if (!(*logs)->append(key_of(writer), lines_of(writer, batch), batch)) ::_exit(7);
        const Acknowledged acknowledged{writer, batch};
        if (::write(pipe, &acknowledged, sizeof acknowledged) != sizeof acknowledged) ::_exit(8);
      }
    });
  for (auto& thread : threads) thread.join();
  ::_exit(9);
}

Result<std::vector<std::string>> read_all(Logs& logs, const StreamKey& key) {
  std::vector<std::string> found;
  ReadQuery query;
  for (int pages = 0; pages < 1000; ++pages) {
    const auto page = TRY(logs.read(key, query));
    for (const auto& event : page.events) found.push_back(event.message);
    if (query.position == page.end) break;
    query.position = page.end;
  }
  return found;
}

TEST(Kill, StoresAcknowledgedLinesOnce) {
  TemporaryDirectory directory;
  SeededRandom random(7);
  uint64_t acknowledged[kWriters] = {};
  for (int kill = 0; kill < kKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      run_child(directory.path(), pipe[1]);
    }
    ::close(pipe[1]);
    for (uint64_t left = random.below(40); left-- > 0;) {
      pollfd waiting{.fd = pipe[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waiting, 1, kPollMilliseconds), 1) << "the child hangs";
      Acknowledged each;
      ASSERT_EQ(::read(pipe[0], &each, sizeof each), ssize_t(sizeof each)) << "the child failed";
      acknowledged[each.writer] = std::max(acknowledged[each.writer], each.batch);
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself: " << WEXITSTATUS(status);
    for (Acknowledged each; ::read(pipe[0], &each, sizeof each) == ssize_t(sizeof each);)
      acknowledged[each.writer] = std::max(acknowledged[each.writer], each.batch);
    ::close(pipe[0]);

    TestClock clock;
    auto logs = open_logs(directory.path() + "/logs", clock, small_files());
    ASSERT_OK(logs);
    uint64_t batches = 0;
    for (int writer = 0; writer < kWriters; ++writer) {
      ASSERT_OK((*logs)->ensure_stream(key_of(writer)));
      const uint64_t last = *(*logs)->last_batch(key_of(writer));
      EXPECT_GE(last, acknowledged[writer]);
      batches += last;
      std::vector<std::string> expected;
      for (uint64_t batch = 1; batch <= last; ++batch)
        for (const auto& event : lines_of(writer, batch)) expected.push_back(event.message);
      const auto found = read_all(**logs, key_of(writer));
      ASSERT_OK(found);
      ASSERT_EQ(*found, expected) << "after kill " << kill;
    }
    auto metrics = open_metrics(directory.path() + "/metrics");
    ASSERT_OK(metrics);
    const auto points =
        (*metrics)->statistics({.key = kCount, .from = clock.now(), .to = clock.now() + 1s});
    ASSERT_OK(points);
    const double count = points->empty() ? 0 : (*points)[0].count;
    EXPECT_GE(count, double(batches));
    EXPECT_LE(count, double(batches + kWriters))
        << "each point is appended before its lines, and at most one batch is incomplete";
  }
}

// Keeps few points in memory, so that most appends are shortly before or after a seal.
MetricSettings small_recent() { return {.recent_points_max = 32}; }
constexpr int kSealKills = 30;
constexpr int kPointsOfBatch = 5;

// The points of all batches of a writer are distinct.
std::vector<MetricRecord> points_of(int writer, uint64_t batch) {
  std::vector<MetricRecord> records;
  for (int i = 0; i < kPointsOfBatch; ++i)
    records.push_back({{"r", "n", "seal/" + std::to_string(writer), {}},
                       sample_of(from_milliseconds(int64_t(batch)), double(batch * 10 + i))});
  return records;
}

[[noreturn]] void run_sealing_child(const std::string& directory, int pipe) {
  auto metrics = open_metrics(directory, small_recent());
  if (!metrics) ::_exit(3);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer)
    threads.emplace_back([&, writer] {
      const std::string name = "writer" + std::to_string(writer);
      const auto last = (*metrics)->last_batch(name);
      if (!last) ::_exit(4);
      for (uint64_t batch = std::max<uint64_t>(1, *last);; ++batch) {
        if (!(*metrics)->append_batch(name, batch, points_of(writer, batch))) ::_exit(5);
        const Acknowledged acknowledged{writer, batch};
        if (::write(pipe, &acknowledged, sizeof acknowledged) != sizeof acknowledged) ::_exit(6);
      }
    });
  for (auto& thread : threads) thread.join();
  ::_exit(7);
}

TEST(Kill, StoresAcknowledgedPointsOnceDuringSeals) {
  TemporaryDirectory directory;
  SeededRandom random(8);
  uint64_t acknowledged[kWriters] = {};
  for (int kill = 0; kill < kSealKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      run_sealing_child(directory.path(), pipe[1]);
    }
    ::close(pipe[1]);
    Acknowledged each;
    for (uint64_t left = random.below(60); left-- > 0;) {
      pollfd waiting{.fd = pipe[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waiting, 1, kPollMilliseconds), 1) << "the child hangs";
      ASSERT_EQ(::read(pipe[0], &each, sizeof each), ssize_t(sizeof each)) << "the child failed";
      acknowledged[each.writer] = std::max(acknowledged[each.writer], each.batch);
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself: " << WEXITSTATUS(status);
    while (::read(pipe[0], &each, sizeof each) == ssize_t(sizeof each))
      acknowledged[each.writer] = std::max(acknowledged[each.writer], each.batch);
    ::close(pipe[0]);

    const auto metrics = open_metrics(directory.path(), small_recent());
    ASSERT_OK(metrics);
    for (int writer = 0; writer < kWriters; ++writer) {
      const uint64_t last = *(*metrics)->last_batch("writer" + std::to_string(writer));
      EXPECT_GE(last, acknowledged[writer]);
      std::vector<double> expected, found;
      for (uint64_t batch = 1; batch <= last; ++batch)
        for (const auto& record : points_of(writer, batch)) expected.push_back(record.sample.sum);
      const auto samples = (*metrics)->samples({.key = points_of(writer, 1)[0].key,
                                                .from = from_milliseconds(0),
                                                .to = from_milliseconds(INT64_MAX)},
                                               SIZE_MAX);
      ASSERT_OK(samples);
      for (const Sample& sample : *samples) found.push_back(sample.sum);
      ASSERT_EQ(found, expected) << "after kill " << kill;
    }
  }
}

}  // namespace
}  // namespace trainyard::observe

#include "remote_write/sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <deque>

#include "base/thread_safety.hpp"
#include "observe/followed_metrics.hpp"
#include "os/temporary_directory.hpp"
#include "remote_write/snappy.hpp"

namespace trainyard::remote_write {
namespace {

constexpr auto kDeadline = std::chrono::seconds(60);

// A receiver that responds with the given statuses and then with 204, and keeps accepted samples.
struct Receiver {
  Mutex mutex;
  ConditionVariable changed;
  std::deque<int> statuses GUARDED_BY(mutex);  // 0: no response
  double poison = -1;                          // a value for which a request is rejected
  std::vector<double> accepted GUARDED_BY(mutex);
  size_t requests GUARDED_BY(mutex) = 0;
  bool held GUARDED_BY(mutex) = false;  // it reads requests, and does not respond

  Result<int> take(const std::string& body) {
    MutexLock lock(mutex);
    ++requests;
    changed.notify_all();
    changed.wait_for(lock, kDeadline, [&]() REQUIRES(mutex) { return !held; });
    if (!statuses.empty()) {
      const int status = statuses.front();
      statuses.pop_front();
      if (status == 0) return unavailable("no response");
      return status;
    }
    const auto series = decode(*snappy_decompress(body, 1 << 20), {});
    std::vector<double> values;
    for (const TimeSeries& each : *series)
      for (const WriteSample& sample : each.samples) values.push_back(sample.value);
    if (std::ranges::find(values, poison) != values.end()) return 400;
    accepted.insert(accepted.end(), values.begin(), values.end());
    changed.notify_all();
    return 204;
  }
  void answer(std::deque<int> with) {
    const MutexLock lock(mutex);
    statuses = std::move(with);
  }
  void hold(bool on) {
    const MutexLock lock(mutex);
    held = on;
    changed.notify_all();
  }
  bool wait_for(size_t values) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kDeadline,
                            [&]() REQUIRES(mutex) { return accepted.size() >= values; });
  }
  bool wait_for_requests(size_t count) {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kDeadline, [&]() REQUIRES(mutex) { return requests >= count; });
  }
};

// A journal that first fails to store positions.
struct FailingJournal final : observe::PointJournal {
  observe::PointJournal& journal;
  std::atomic<int> failures;

  FailingJournal(observe::PointJournal& of, int times) : journal(of), failures(times) {}
  Result<observe::JournalPage> read(const std::string& reader, size_t count_max) override {
    return journal.read(reader, count_max);
  }
  Result<void> advance(const std::string& reader, uint64_t position) override {
    if (failures.fetch_sub(1) > 0) return exhausted("the disk is full");
    return journal.advance(reader, position);
  }
  Result<uint64_t> behind(const std::string& reader) override { return journal.behind(reader); }
};

struct SenderWorld : testing::Test {
  os::TemporaryDirectory directory;
  Receiver receiver;
  observe::FollowedMetrics followed =
      *observe::open_followed_metrics(directory.path(), {}, {.journal = {.readers = {"r"}}});
  std::unique_ptr<Sender> sender;

  void append(int first, int count) {
    std::vector<observe::MetricRecord> records;
    for (int i = first; i < first + count; ++i)
      records.push_back({{"eu-west-1", "n", "m" + std::to_string(i % 5), {}},
                         observe::sample_of(from_milliseconds(1000 + i), i)});
    ASSERT_TRUE(followed.metrics->append(records));
  }
  void start(bool counters = false) { start(*followed.journal, counters); }
  void start(observe::PointJournal& journal, bool counters) {
    sender = std::make_unique<Sender>(
        journal,
        [counters](const observe::MetricKey& key) {
          NamedSeries series;
          series.labels = {{"__name__", key.name}};
          series.counter = counters;
          return series;
        },
        [this](const std::string& body) { return receiver.take(body); },
        SenderSettings{.name = "r", .points_max = 10, .interval = 10ms});
  }
  std::vector<double> accepted() {
    const MutexLock lock(receiver.mutex);
    auto values = receiver.accepted;
    std::ranges::sort(values);
    return values;
  }
};

std::vector<double> numbers(int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(i);
  return out;
}

TEST_F(SenderWorld, SendsStoredAndNewPointsInTheirOrder) {
  append(0, 25);
  start();
  ASSERT_TRUE(receiver.wait_for(25));
  append(25, 5);
  sender->wake();
  ASSERT_TRUE(receiver.wait_for(30));
  EXPECT_EQ(accepted(), numbers(30));
}

TEST_F(SenderWorld, SendsEachPointAfterTheReceiverRecovers) {
  receiver.answer({0, 503});
  append(0, 5);
  start();
  ASSERT_TRUE(receiver.wait_for(5));
  EXPECT_EQ(accepted(), numbers(5));
  EXPECT_EQ(sender->counts().failures.load(), 2U);
}

TEST_F(SenderWorld, ContinuesWhereThePreviousSenderEnded) {
  append(0, 20);
  start();
  ASSERT_TRUE(receiver.wait_for(20));
  sender.reset();
  append(20, 5);
  start();
  ASSERT_TRUE(receiver.wait_for(25));
  sender.reset();
  // The last request of the first sender may be sent again, if it ended before the position was
  // stored.
  auto values = accepted();
  values.erase(std::unique(values.begin(), values.end()), values.end());
  EXPECT_EQ(values, numbers(25));
}

TEST_F(SenderWorld, LeavesOutOnlyRejectedSamples) {
  receiver.poison = 7;
  append(0, 20);
  start();
  ASSERT_TRUE(receiver.wait_for(19));
  sender.reset();
  auto wanted = numbers(20);
  wanted.erase(wanted.begin() + 7);
  EXPECT_EQ(accepted(), wanted);
}

TEST_F(SenderWorld, SumsCountersOnceWhenThePositionIsNotStored) {
  FailingJournal journal(*followed.journal, 2);
  append(5, 1);  // the value 5 of the metric m0
  start(journal, true);
  ASSERT_TRUE(receiver.wait_for(1));
  append(10, 1);  // the value 10 of m0
  ASSERT_TRUE(receiver.wait_for(2));
  sender.reset();
  EXPECT_EQ(accepted(), (std::vector<double>{5, 15}));
  EXPECT_LE(journal.failures.load(), 0);
}

TEST_F(SenderWorld, EndsWhileThePositionCannotBeStored) {
  FailingJournal journal(*followed.journal, INT_MAX);
  append(0, 5);
  start(journal, false);
  ASSERT_TRUE(receiver.wait_for(5));
  sender.reset();
  EXPECT_EQ(*followed.journal->behind("r"), 5U);
}

TEST_F(SenderWorld, ContinuesAfterPointsOfRemovedMetrics) {
  append(0, 10);  // one page
  const Instant later = from_milliseconds(1000) + 456 * 24h;
  ASSERT_TRUE(followed.metrics->retire(later));
  ASSERT_TRUE(
      followed.metrics->append({{{"eu-west-1", "n", "later", {}}, observe::sample_of(later, 99)}}));
  start();
  ASSERT_TRUE(receiver.wait_for(1));
  sender.reset();
  EXPECT_EQ(accepted(), (std::vector<double>{99}));
}

TEST_F(SenderWorld, EndDoesNotWaitForARequestInProgress) {
  receiver.hold(true);
  receiver.answer(std::deque<int>(1000, 503));
  append(0, 5);
  start();
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender->end();
  receiver.hold(false);
  sender.reset();
  const MutexLock lock(receiver.mutex);
  EXPECT_EQ(receiver.requests, 1U) << "no request was sent after end()";
}

TEST_F(SenderWorld, SendsNoPartsOfARejectedRequestAfterTheEnd) {
  append(0, 10);
  receiver.answer(std::deque<int>(100, 400));
  receiver.hold(true);
  start();
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender->end();
  receiver.hold(false);
  sender->wait();
  {
    const MutexLock lock(receiver.mutex);
    EXPECT_EQ(receiver.requests, 1U);
  }
  EXPECT_EQ(sender->counts().left_out, 0U) << "counts can be read until the sender is destroyed";
  receiver.answer({});
  start();
  ASSERT_TRUE(receiver.wait_for(10)) << "the points are sent after the next start";
}

TEST_F(SenderWorld, EndsWhileItsReceiverFails) {
  receiver.answer(std::deque<int>(1000, 503));
  append(0, 5);
  start();
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender.reset();
  EXPECT_EQ(*followed.journal->behind("r"), 5U) << "they stay in the journal";
}

}  // namespace
}  // namespace trainyard::remote_write

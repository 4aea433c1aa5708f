#include "remote_write/sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/thread_safety.hpp"
#include "observe/followed_metrics.hpp"
#include "os/temporary_directory.hpp"
#include "remote_write/snappy.hpp"

namespace trainyard::remote_write {
namespace {

constexpr auto kDeadline = std::chrono::seconds(60);

// A receiver that answers with the statuses it was given, then with 204, and keeps what it accepts.
struct Receiver {
  Mutex mutex;
  ConditionVariable changed;
  std::deque<int> statuses GUARDED_BY(mutex);  // 0: no answer
  double poison = -1;                          // a value for which a request is rejected
  std::vector<double> accepted GUARDED_BY(mutex);
  size_t requests GUARDED_BY(mutex) = 0;

  Result<int> take(const std::string& body) {
    const MutexLock lock(mutex);
    ++requests;
    changed.notify_all();
    if (!statuses.empty()) {
      const int status = statuses.front();
      statuses.pop_front();
      if (status == 0) return unavailable("no answer");
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
  void start() {
    sender = std::make_unique<Sender>(
        *followed.journal,
        [](const observe::MetricKey& key) {
          NamedSeries series;
          series.labels = {{"__name__", key.name}};
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

TEST_F(SenderWorld, PointsAreSentInTheirOrderAlsoThoseThatCome) {
  append(0, 25);
  start();
  ASSERT_TRUE(receiver.wait_for(25));
  append(25, 5);
  sender->wake();
  ASSERT_TRUE(receiver.wait_for(30));
  EXPECT_EQ(accepted(), numbers(30));
}

TEST_F(SenderWorld, AReceiverThatFailsGetsEachPointLater) {
  receiver.answer({0, 503});
  append(0, 5);
  start();
  ASSERT_TRUE(receiver.wait_for(5));
  EXPECT_EQ(accepted(), numbers(5));
  EXPECT_EQ(sender->counts().failures.load(), 2U);
}

TEST_F(SenderWorld, AnotherSenderContinuesWhereTheFormerOneEnded) {
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

TEST_F(SenderWorld, OnlySamplesThatAReceiverRejectsAreLeftOut) {
  receiver.poison = 7;
  append(0, 20);
  start();
  ASSERT_TRUE(receiver.wait_for(19));
  sender.reset();
  auto wanted = numbers(20);
  wanted.erase(wanted.begin() + 7);
  EXPECT_EQ(accepted(), wanted);
}

TEST_F(SenderWorld, ASenderEndsWhileItsReceiverFails) {
  receiver.answer(std::deque<int>(1000, 503));
  append(0, 5);
  start();
  ASSERT_TRUE(receiver.wait_for_requests(1));
  sender.reset();
  EXPECT_EQ(*followed.journal->behind("r"), 5U) << "they wait in the journal";
}

}  // namespace
}  // namespace trainyard::remote_write

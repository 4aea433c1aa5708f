// Two processes of a machine are two BlockSources on one cache here: they share nothing else.
#include "mount/block_source.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <deque>
#include <future>
#include <optional>
#include <utility>

#include "mount/cache_warmer.hpp"
#include "objects/forwarding.hpp"
#include "objects/memory.hpp"
#include "objects/testing/damaged_objects.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::mount {
namespace {

constexpr Duration kWaitMax = 60s;

// Counts requests for bytes; while it is closed, they wait.
class Gate final : public objects::ForwardingObjects {
 public:
  using ForwardingObjects::ForwardingObjects;

  Result<std::unique_ptr<objects::Reader>> get(const std::string& bucket, const std::string& key,
                                               std::optional<objects::Range> range) override {
    ++gets;
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kWaitMax, [&]() REQUIRES(mutex_) { return !closed_; }));
    if (failure_) return *failure_;
    lock.unlock();
    return ForwardingObjects::get(bucket, key, range);
  }
  Result<objects::ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    {
      const MutexLock lock(mutex_);
      if (failure_) return *failure_;
    }
    return ForwardingObjects::head(bucket, key);
  }
  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  void open(std::optional<Error> failure = {}) {
    {
      const MutexLock lock(mutex_);
      closed_ = false;
      failure_ = std::move(failure);
    }
    changed_.notify_all();
  }

  std::atomic<int> gets = 0;

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
};

// Counts its reads: a source reads the clock each time it tries a lock.
class CountedClock final : public Clock {
 public:
  Instant now() override { return clock_.now(); }
  std::chrono::nanoseconds monotonic() override {
    ++reads;
    return clock_.monotonic();
  }
  std::atomic<int> reads = 0;

 private:
  os::MachineClock clock_;
};

template <class Condition>
void wait_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kWaitMax;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(condition());
}

class BlockSourceTest : public testing::Test {
 protected:
  // A simulated process: a separate store, clock and source.
  struct Process {
    Process(objects::Objects& store, const std::string& directory, SourceSettings settings,
            uint64_t free_bytes_min = 0)
        : gate(store),
          cache(*cache::BlockCache::open({directory + "/blocks", 1 << 30, free_bytes_min})),
          source(gate, cache.get(), clock, std::move(settings), [](const std::string&) {}) {}
    Gate gate;
    CountedClock clock;
    std::unique_ptr<cache::BlockCache> cache;
    BlockSource source;
  };
  using Reading = std::future<Result<BlockSource::Block>>;

  void SetUp() override {
    ASSERT_TRUE(objects_->create_bucket("data", "eu-west-1"));
    const std::string content(2 * cache::kBlockBytes + 5, 'c');
    const auto info = *objects::write_all(*objects_, "data", "key", content);
    object_ = {"data", "key", "key", content.size(), info.etag, 0};
  }
  std::unique_ptr<Process> process(Duration other_fetch_max = kWaitMax,
                                   uint64_t free_bytes_min = 0) {
    return std::make_unique<Process>(
        *objects_, directory_.path(),
        SourceSettings{"http://e", 64, Duration(0), Duration(0), other_fetch_max}, free_bytes_min);
  }
  // Returns a process that waits for an unavailable store.
  std::unique_ptr<Process> waiting_process() {
    return std::make_unique<Process>(
        *objects_, directory_.path(),
        SourceSettings{"http://e", 64, kWaitMax, Duration(0), kWaitMax});
  }
  Reading read(Process& process, uint64_t number = 0) {
    return std::async(std::launch::async,
                      [this, &process, number] { return process.source.get(object_, number); });
  }
  // Starts a read whose request waits at the closed gate.
  Reading read_at_closed_gate(Process& process) {
    process.gate.close();
    auto reading = read(process);
    wait_until([&] { return process.gate.gets == 1; });
    return reading;
  }
  // Waits until the process has tried the lock several times.
  static void wait_for_polls(Process& process) {
    wait_until([&] { return process.clock.reads > 8; });
  }

  os::TemporaryDirectory directory_;
  os::MachineClock clock_;
  os::MachineRandom random_;
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  MountedObject object_;
};

TEST_F(BlockSourceTest, TwoProcessesFetchABlockOnce) {
  const auto first = process(), second = process();
  auto slow = read_at_closed_gate(*first);
  auto waiting = read(*second);
  wait_for_polls(*second);
  first->gate.open();
  ASSERT_TRUE(slow.get());
  const auto block = waiting.get();
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ((*block)->size(), cache::kBlockBytes);
  EXPECT_EQ(first->gate.gets, 1);
  EXPECT_EQ(second->gate.gets, 0);
}

TEST_F(BlockSourceTest, ManyThreadsOfManyProcessesFetchEachBlockOnce) {
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<Reading> readings;
  for (int i = 0; i < 4; ++i) processes.push_back(process());
  for (int round = 0; round < 4; ++round)
    for (auto& each : processes)
      for (uint64_t number = 0; number < 3; ++number) readings.push_back(read(*each, number));
  for (auto& each : readings) EXPECT_TRUE(each.get());
  int gets = 0;
  for (auto& each : processes) gets += each->gate.gets;
  EXPECT_EQ(gets, 3);
}

TEST_F(BlockSourceTest, AFailedFetchIsRepeatedByAWaitingProcess) {
  const auto first = process(), second = process();
  auto failing = read_at_closed_gate(*first);
  auto waiting = read(*second);
  wait_for_polls(*second);
  first->gate.open(unavailable("503"));
  EXPECT_FALSE(failing.get());
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(second->gate.gets, 1);
}

TEST_F(BlockSourceTest, LimitsTheWaitForAnotherProcess) {
  const auto first = process(), second = process(Duration(0));
  auto slow = read_at_closed_gate(*first);
  EXPECT_TRUE(read(*second).get());
  first->gate.open();
  EXPECT_TRUE(slow.get());
}

TEST_F(BlockSourceTest, ABlockOfAnotherJobNeedsTheReadersRights) {
  const auto first = process(), second = process();
  auto slow = read_at_closed_gate(*first);
  second->gate.open(denied("403"));
  auto waiting = read(*second);
  wait_for_polls(*second);
  first->gate.open();
  ASSERT_TRUE(slow.get());
  const auto block = waiting.get();
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().kind, Kind::denied);
}

TEST_F(BlockSourceTest, StopEndsTheWaitForAnotherProcess) {
  const auto first = process(), second = process();
  auto slow = read_at_closed_gate(*first);
  auto waiting = read(*second);
  wait_for_polls(*second);
  second->source.stop();
  EXPECT_EQ(waiting.get().error().kind, Kind::cancelled);
  first->gate.open();
  EXPECT_TRUE(slow.get());
}

TEST_F(BlockSourceTest, WithoutSpaceInTheCacheNoProcessWaits) {
  const auto first = process(), second = process(kWaitMax, UINT64_MAX);
  auto slow = read_at_closed_gate(*first);
  EXPECT_TRUE(read(*second).get());
  first->gate.open();
  EXPECT_TRUE(slow.get());
}

TEST_F(BlockSourceTest, AnObjectIsComparedWithItsOwnChecksum) {
  objects::DamagedObjects damaged(*objects_);
  Process one(damaged, directory_.path() + "/other",
              {"http://e", 64, Duration(0), Duration(0), kWaitMax});
  std::deque<MountedObject> all;  // sources identify objects by their addresses
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    objects::PutOptions options;
    options.checksums[algorithm] = "";
    const std::string content = std::string("content with a ") + algorithm;
    const auto info = *objects::write_all(*objects_, "data", algorithm, content, options);
    const auto& object =
        all.emplace_back(MountedObject{"data", algorithm, algorithm, content.size(), info.etag, 0});
    damaged.damaged = 2;
    const auto block = one.source.get(object, 0);
    ASSERT_FALSE(block) << algorithm;
    EXPECT_EQ(block.error().kind, Kind::corrupt);
    EXPECT_NE(block.error().message.find(std::string("checksum (") + algorithm), std::string::npos)
        << block.error().message;
    EXPECT_FALSE(one.cache->has(block_id("http://e", object, 0)));
    damaged.damaged = 1;
    EXPECT_EQ(**one.source.get(object, 0), content) << "it is fetched once more";
  }
  EXPECT_EQ(one.gate.gets, 5 * 4);
}

TEST_F(BlockSourceTest, AWarmedBlockIsFetchedOnce) {
  const auto one = process();
  EXPECT_TRUE(*one->source.warm(object_, 0));
  EXPECT_TRUE(*one->source.warm(object_, 0));
  EXPECT_TRUE(read(*one).get());
  EXPECT_EQ(one->gate.gets, 1);
  EXPECT_EQ(one->source.counts().fetched_bytes, cache::kBlockBytes);
  EXPECT_EQ(one->source.counts().cached_bytes, cache::kBlockBytes);
}

TEST_F(BlockSourceTest, WarmingEndsWhereTheCacheKeepsNoMore) {
  const auto one = process(kWaitMax, UINT64_MAX);
  EXPECT_FALSE(*one->source.warm(object_, 0));
  EXPECT_EQ(one->gate.gets, 0);
}

TEST_F(BlockSourceTest, WarmingWaitsForAnUnavailableStore) {
  const auto one = waiting_process();
  one->gate.open(unavailable("503"));
  auto warming = std::async(std::launch::async, [&] { return one->source.warm(object_, 0); });
  wait_until([&] { return one->gate.gets > 0; });
  one->gate.open();
  EXPECT_TRUE(warming.get());
}

TEST_F(BlockSourceTest, WarmingLeavesOtherErrorsToReads) {
  const auto one = process();
  one->gate.open(denied("403"));
  EXPECT_EQ(one->source.warm(object_, 0).error().kind, Kind::denied);
}

TEST_F(BlockSourceTest, AReadTakesABlockThatIsBeingWarmed) {
  const auto one = process();
  one->gate.close();
  auto warming = std::async(std::launch::async, [&] { return one->source.warm(object_, 1); });
  wait_until([&] { return one->gate.gets == 1; });
  auto reading = read(*one, 1);
  wait_for_polls(*one);
  one->gate.open();
  EXPECT_TRUE(warming.get());
  EXPECT_TRUE(reading.get());
  EXPECT_EQ(one->gate.gets, 1);
}

TEST_F(BlockSourceTest, AWarmerFetchesAllBlocksOnce) {
  const auto one = process();
  std::vector<MountedObject> objects{object_};
  for (int i = 0; i < 50; ++i) {
    const std::string key = "small/" + std::to_string(i);
    const auto info = *objects::write_all(*objects_, "data", key, std::string(size_t(i), 's'));
    objects.push_back({"data", key, key, uint64_t(i), info.etag, 0});
  }
  { const CacheWarmer warmer(one->source, objects); }
  EXPECT_EQ(one->gate.gets, 3 + 49) << "an empty object has no block";
  for (const auto& each : objects)
    for (uint64_t first = 0; first < each.bytes; first += cache::kBlockBytes)
      EXPECT_TRUE(one->cache->has(block_id("http://e", each, first / cache::kBlockBytes)));
}

TEST_F(BlockSourceTest, AStoppedSourceEndsItsWarmer) {
  const auto one = waiting_process();
  one->gate.open(unavailable("503"));
  const std::vector<MountedObject> objects{object_};
  auto warmer = std::make_unique<CacheWarmer>(one->source, objects);
  wait_until([&] { return one->gate.gets > 0; });
  one->source.stop();
  warmer.reset();
  EXPECT_FALSE(one->cache->has(block_id("http://e", object_, 0)));
}

TEST_F(BlockSourceTest, BlocksOfAPinHaveTheHashesAndSizesOfTheCache) {
  const auto one = process();
  for (uint64_t number = 0; number < 3; ++number) ASSERT_TRUE(read(*one, number).get());
  const auto blocks = blocks_of("http://e", {object_, object_});
  ASSERT_EQ(blocks.size(), 6u);
  for (const auto& each : blocks) {
    struct stat status {};
    const std::string path = directory_.path() + "/blocks/" + cache::path_of(each.hash);
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(uint64_t(status.st_size), each.bytes);
  }
}

}  // namespace
}  // namespace trainyard::mount

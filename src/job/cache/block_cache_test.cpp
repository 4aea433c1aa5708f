#include "cache/block_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <random>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::cache {
namespace {

constexpr uint64_t kSmallBlock = 64 << 10;

BlockId block(uint64_t number, const std::string& etag = "v1") {
  return {"http://e", "bucket", "key", etag, number};
}

class BlockCacheTest : public testing::Test {
 protected:
  std::unique_ptr<BlockCache> open(uint64_t bytes_max = 64 << 20) {
    auto opened = BlockCache::open({directory_.path() + "/blocks", bytes_max, 0});
    EXPECT_TRUE(opened);
    return *std::move(opened);
  }
  std::string path(const BlockId& id) const { return directory_.path() + "/blocks/" + path_of(id); }
  // Sets the time of a block's last use.
  void used_at(const BlockId& id, time_t seconds) const {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    // It may have been removed already, to make space for others.
    ASSERT_TRUE(::utimensat(AT_FDCWD, path(id).c_str(), times, 0) == 0 || errno == ENOENT);
  }
  uint64_t bytes_on_disk() const {
    uint64_t bytes = 0;
    for (const auto& each :
         std::filesystem::recursive_directory_iterator(directory_.path() + "/blocks"))
      if (each.is_regular_file()) bytes += each.file_size();
    return bytes;
  }

  os::TemporaryDirectory directory_;
};

TEST_F(BlockCacheTest, KeepsBlocksOfEachVersionBeyondTheProcess) {
  ASSERT_TRUE(open()->put(block(0), "old"));
  const auto cache = open();
  EXPECT_EQ(**cache->get(block(0)), "old");
  EXPECT_FALSE(*cache->get(block(1)));
  EXPECT_FALSE(*cache->get(block(0, "v2")));
  ASSERT_TRUE(cache->put(block(0, "v2"), std::string("new\0", 4)));
  EXPECT_EQ(**cache->get(block(0, "v2")), std::string("new\0", 4));
  EXPECT_EQ(**cache->get(block(0)), "old");
}

TEST_F(BlockCacheTest, ABrokenBlockIsAbsentAndRemoved) {
  const auto cache = open();
  ASSERT_TRUE(cache->put(block(0), "content"));
  const auto whole = *os::read_file(path(block(0)));
  for (size_t at = 0; at < whole.size(); ++at) {
    auto flipped = whole;
    flipped[at] ^= 1;
    ASSERT_TRUE(os::write_file(path(block(0)), flipped));
    ASSERT_FALSE(*cache->get(block(0))) << at;
    ASSERT_FALSE(os::exists(path(block(0))));
    ASSERT_TRUE(os::write_file(path(block(0)), whole.substr(0, at)));
    ASSERT_FALSE(*cache->get(block(0))) << at;
  }
  EXPECT_EQ(cache->counts().broken, 2 * whole.size());
}

TEST_F(BlockCacheTest, ABlockUnderAnotherNameIsIgnored) {
  const auto cache = open();
  ASSERT_TRUE(cache->put(block(0), "zero") && cache->put(block(1), "one"));
  std::filesystem::rename(path(block(0)), path(block(1)));
  EXPECT_FALSE(*cache->get(block(1)));
}

TEST_F(BlockCacheTest, TheLeastRecentlyUsedBlocksAreRemovedFirst) {
  const auto cache = open(10 * kSmallBlock);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(cache->put(block(i), std::string(kSmallBlock - 4096, char(i))));
    used_at(block(i), time_t(1000 + i));
  }
  EXPECT_LE(bytes_on_disk(), 11 * kSmallBlock);
  EXPECT_FALSE(*cache->get(block(0)));
  EXPECT_TRUE(*cache->get(block(19)));
  uint64_t oldest = 0;
  while (!os::exists(path(block(oldest)))) ++oldest;
  EXPECT_EQ(cache->counts().removed, oldest);
}

TEST_F(BlockCacheTest, KeepsNothingOnAFullDisk) {
  const auto cache = *BlockCache::open({directory_.path() + "/blocks", 1 << 30, UINT64_MAX});
  ASSERT_TRUE(cache->put(block(0), "content"));
  EXPECT_FALSE(*cache->get(block(0)));
  EXPECT_EQ(cache->counts().without_space, 1u);
}

// The slow, obvious model of any number of processes: a map without a limit. A get returns what was
// put last under this id, or nothing.
TEST_F(BlockCacheTest, RandomHistoriesMatchTheModel) {
  std::mt19937 random(16);
  std::map<std::string, std::string> model;
  std::vector<std::unique_ptr<BlockCache>> processes;
  for (int i = 0; i < 3; ++i) processes.push_back(open(40 * 4096));
  size_t found = 0;
  for (int step = 0; step < 3000; ++step) {
    auto& cache = processes[random() % processes.size()];
    const auto id = block(random() % 60, random() % 2 ? "v1" : "v2");
    switch (random() % 8) {
      case 0:
        cache = open(40 * 4096);
        break;
      case 1:
        if (os::exists(path(id))) {
          ASSERT_TRUE(os::write_file(path(id), "torn"));
        }
        break;
      case 2:
      case 3:
      case 4:
        model[identity_of(id)] = std::to_string(random()) + std::string(random() % 5000, 'x');
        ASSERT_TRUE(cache->put(id, model[identity_of(id)]));
        break;
      default: {
        const auto got = cache->get(id);
        ASSERT_TRUE(got);
        if (!*got) continue;
        ASSERT_EQ(**got, model.at(identity_of(id)));
        ++found;
      }
    }
  }
  EXPECT_GT(found, 100u);
}

// Runs `work` in a process of its own, which is killed once `work` has called its argument.
template <class Work>
void run_and_kill(const Work& work) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    work([&] { (void)!::write(ends[1], "x", 1); });
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char ready;
  EXPECT_EQ(::read(ends[0], &ready, 1), 1);
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

PinnedBlock pinned(const BlockId& id, uint64_t content_bytes) {
  return {hash_of(id), uint32_t(file_bytes_of(id, content_bytes))};
}

class PinTest : public BlockCacheTest {
 protected:
  static constexpr uint64_t kContent = kSmallBlock - 4096;
  // Ten blocks are the limit, nine may be pinned. The lowest numbers were used first.
  void fill(BlockCache& cache, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      ASSERT_TRUE(cache.put(block(i), std::string(kContent, char(i))));
      used_at(block(i), time_t(1000 + i));
    }
  }
  static std::vector<PinnedBlock> blocks(uint64_t from, uint64_t to) {
    std::vector<PinnedBlock> all;
    for (uint64_t i = from; i < to; ++i) all.push_back(pinned(block(i), kContent));
    return all;
  }
  bool all_cached(uint64_t from, uint64_t to) const {
    for (uint64_t i = from; i < to; ++i)
      if (!os::exists(path(block(i)))) return false;
    return true;
  }
};

TEST_F(PinTest, BlocksOfARunningJobAreNotRemoved) {
  const auto cache = open(10 * kSmallBlock);
  fill(*cache, 0, 4);
  auto held = cache->hold("job a", blocks(0, 6));
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ((*held)->bytes_pinned, (*held)->bytes_wanted);
  fill(*cache, 6, 40);
  EXPECT_TRUE(all_cached(0, 4));
  fill(*cache, 4, 6);  // it was pinned before it was there
  fill(*cache, 40, 60);
  EXPECT_TRUE(all_cached(0, 6));
  EXPECT_LE(bytes_on_disk(), 11 * kSmallBlock);
  held->reset();
  fill(*cache, 60, 80);
  EXPECT_FALSE(os::exists(path(block(0))));
  EXPECT_TRUE(cache->pins()->empty());
}

TEST_F(PinTest, ALargePinCoversTheBlocksThatFit) {
  const auto cache = open(11 * kSmallBlock);
  const auto first = *cache->hold("job a", blocks(0, 5));
  const auto second = *cache->hold("job b", blocks(3, 20));
  EXPECT_EQ(first->bytes_wanted, first->bytes_pinned);
  EXPECT_EQ(second->bytes_max, cache->pinned_bytes_max());
  EXPECT_EQ(second->bytes_wanted, 17 * kSmallBlock);
  // Two are shared; four more fit next to the five.
  EXPECT_EQ(second->bytes_pinned, 6 * kSmallBlock);
  EXPECT_EQ(second->bytes_of_others, 3 * kSmallBlock);
  fill(*cache, 0, 60);
  EXPECT_TRUE(all_cached(0, 9));
  const auto third = *cache->hold("job c", blocks(50, 60));
  EXPECT_EQ(third->bytes_pinned, 0u);
}

TEST_F(PinTest, APinMayHaveItsOwnLimit) {
  const auto cache = open(11 * kSmallBlock);
  const auto first = *cache->hold("job a", blocks(0, 5), 3 * kSmallBlock);
  EXPECT_EQ(first->bytes_wanted, 5 * kSmallBlock);
  EXPECT_EQ(first->bytes_pinned, 3 * kSmallBlock);
  // Blocks that another pin has count as well.
  const auto second = *cache->hold("job b", blocks(0, 5), 4 * kSmallBlock);
  EXPECT_EQ(second->bytes_pinned, 4 * kSmallBlock);
  EXPECT_EQ((*cache->hold("job c", blocks(0, 1), 0))->bytes_pinned, 0u);
}

TEST_F(PinTest, APinEndsWithItsProcess) {
  const auto cache = open(10 * kSmallBlock);
  run_and_kill([&](const auto& ready) {
    const auto held = cache->hold("job a", blocks(0, 5));
    if (held && cache->pins()->size() == 1) ready();
    ::pause();
  });
  EXPECT_TRUE(os::exists(directory_.path() + "/blocks/pins"));
  EXPECT_TRUE(cache->pins()->empty());
  EXPECT_TRUE(os::list_directory(directory_.path() + "/blocks/pins")->empty());
}

TEST_F(PinTest, AKeptPinLastsUntilItIsRemoved) {
  fill(*open(10 * kSmallBlock), 0, 3);
  ASSERT_TRUE(open(10 * kSmallBlock)->keep_pinned({"s3://b/x", blocks(0, 3)}));
  const auto cache = open(10 * kSmallBlock);
  fill(*cache, 10, 40);
  EXPECT_TRUE(all_cached(0, 3));
  const auto found = cache->pins();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().pin.name, "s3://b/x");
  EXPECT_FALSE(found->front().held);
  const auto refused = cache->keep_pinned({"s3://b/y", blocks(10, 20)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  EXPECT_EQ(cache->pins()->size(), 1u);
  EXPECT_TRUE(cache->keep_pinned({"s3://b/x", blocks(1, 3)}));  // replaced
  EXPECT_EQ(cache->pins()->front().pin.blocks.size(), 2u);
  EXPECT_TRUE(*cache->unpin("s3://b/x"));
  EXPECT_FALSE(*cache->unpin("s3://b/x"));
  fill(*cache, 40, 60);
  EXPECT_FALSE(os::exists(path(block(1))));
}

// At each disk error, a kept pin is the former one or the new one, and put() still works.
TEST_F(PinTest, DiskErrorsLeaveTheFormerPinOrTheNewOne) {
  ASSERT_TRUE(open(10 * kSmallBlock)->keep_pinned({"s3://b/x", blocks(0, 2)}));
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 100u);
    NthFileFault fault(nth, nth % 2 ? ENOSPC : EIO);
    const auto cache =
        *BlockCache::open({directory_.path() + "/blocks", 10 * kSmallBlock, 0}, &fault);
    fault.arm();
    const auto done = cache->keep_pinned({"s3://b/x", blocks(0, 3)});
    const auto held = cache->hold("job a", blocks(4, 5));
    const auto kept = cache->put(block(0), std::string(kContent, 'x'));
    EXPECT_EQ(done && held && kept, !fault.struck());
    const auto found = open(10 * kSmallBlock)->pins();
    ASSERT_TRUE(found) << found.error().message;
    size_t of_x = 0;
    for (const auto& each : *found)
      if (!each.held) of_x = each.pin.blocks.size();
    EXPECT_TRUE(of_x == 3 || (of_x == 2 && !done)) << of_x;
    ASSERT_TRUE(open(10 * kSmallBlock)->keep_pinned({"s3://b/x", blocks(0, 2)}));
    if (!fault.struck()) break;
  }
}

TEST_F(PinTest, AKillLeavesTheFormerPinOrTheNewOne) {
  const auto cache = open(10 * kSmallBlock);
  ASSERT_TRUE(cache->keep_pinned({"s3://b/x", blocks(0, 2)}));
  for (int round = 0; round < 20; ++round) {
    run_and_kill([&](const auto& ready) {
      ready();
      for (uint64_t i = 0;; ++i) (void)cache->keep_pinned({"s3://b/x", blocks(0, 2 + i % 4)});
    });
    const auto found = cache->pins();
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 1u);
    EXPECT_GE(found->front().pin.blocks.size(), 2u);
  }
}

TEST_F(PinTest, WithoutReadablePinsNothingIsRemovedOrKept) {
  const auto cache = open(10 * kSmallBlock);
  fill(*cache, 0, 2);
  ASSERT_TRUE(cache->keep_pinned({"s3://b/x", blocks(0, 2)}));
  const std::string pins = directory_.path() + "/blocks/pins";
  const std::string file = pins + "/" + os::list_directory(pins)->front();
  auto bytes = *os::read_file(file);
  bytes.back() ^= 1;
  ASSERT_TRUE(os::write_file(file, bytes));
  const auto trimmed = cache->trim();
  ASSERT_FALSE(trimmed);
  EXPECT_EQ(trimmed.error().kind, Kind::corrupt);
  EXPECT_NE(trimmed.error().message.find(file), std::string::npos) << trimmed.error().message;
  for (uint64_t i = 2; i < 40; ++i) (void)cache->put(block(i), std::string(kContent, 'x'));
  EXPECT_TRUE(all_cached(0, 2));
  EXPECT_LE(bytes_on_disk(), 11 * kSmallBlock);
  ASSERT_EQ(::unlink(file.c_str()), 0);
  EXPECT_TRUE(cache->put(block(50), "content"));
}

TEST_F(PinTest, DropRemovesBlocksThatNoJobHolds) {
  const auto cache = open();
  fill(*cache, 0, 6);
  ASSERT_TRUE(cache->keep_pinned({"s3://b/x", blocks(0, 2)}));
  const auto held = *cache->hold("job a", blocks(4, 5));
  const auto dropped = cache->drop([](const BlockId& id) { return id.number != 5; });
  ASSERT_TRUE(dropped);
  EXPECT_EQ(dropped->removed, 4u);
  EXPECT_EQ(dropped->held, 1u);
  EXPECT_TRUE(all_cached(4, 6));
  std::vector<uint64_t> seen;
  ASSERT_TRUE(cache->visit([&](const CachedBlock& each) {
    EXPECT_EQ(each.id.key, "key");
    EXPECT_GE(each.bytes, kContent);
    EXPECT_EQ(each.used, from_milliseconds(int64_t(1000 + each.id.number) * 1000));
    seen.push_back(each.id.number);
  }));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<uint64_t>{4, 5}));
}

TEST_F(BlockCacheTest, ABlockIsFetchedByOneThreadAtATime) {
  const auto cache = open();
  {
    auto first = *cache->fetch_lock(block(0));
    auto second = *open()->fetch_lock(block(0));
    auto other = *cache->fetch_lock(block(1));
    EXPECT_TRUE(*first.try_take());
    EXPECT_FALSE(*second.try_take());
    EXPECT_TRUE(*other.try_take());
  }
  auto second = *open()->fetch_lock(block(0));
  EXPECT_TRUE(*second.try_take());
}

TEST_F(BlockCacheTest, AKilledFetchReleasesItsBlock) {
  const auto cache = open();
  run_and_kill([&](const auto& ready) {
    auto lock = *cache->fetch_lock(block(0));
    if (*lock.try_take()) ready();
    ::pause();
  });
  auto lock = *cache->fetch_lock(block(0));
  EXPECT_TRUE(*lock.try_take());
}

TEST(Pins, SurviveEncodingAndDecoding) {
  const Pin pin{"name", {{hash_of(block(7)), 1234}}};
  const std::string file = encode_pin(pin);
  // Golden bytes: a change of the format needs another magic.
  EXPECT_EQ(file.substr(0, 8), "TYPINS01");
  EXPECT_EQ(file.substr(12, 8), std::string("\4\0\0\0name", 8));
  EXPECT_EQ(file.substr(52), std::string("\xd2\4\0\0", 4));
  EXPECT_EQ(encode_pin(*decode_pin(file)), file);
  for (size_t at = 0; at < file.size(); ++at) {
    auto flipped = file;
    flipped[at] ^= 1;
    EXPECT_FALSE(decode_pin(flipped)) << at;
    EXPECT_FALSE(decode_pin(file.substr(0, at))) << at;
  }
}

TEST(Blocks, IdentitiesAreEqualOnlyForEqualIds) {
  const BlockId id{"http://e", "b", "k:1", "etag", 3};
  EXPECT_EQ(identity_of(*parse_identity(identity_of(id))), identity_of(id));
  EXPECT_EQ(declared_id(encode_block(id, "content"))->key, "k:1");
  EXPECT_EQ(file_bytes_of(id, 7), encode_block(id, "content").size());
  for (const char* wrong :
       {"", "1", "1:", "-1:a", "01:a1:b1:k1:e1", "1:a1:b1:k1:e", "1:a1:b1:k1:e-1"})
    EXPECT_FALSE(parse_identity(wrong)) << wrong;

  EXPECT_NE(identity_of({"e", "b", "k1:e", "", 1}), identity_of({"e", "b", "k", "e", 1}));
  EXPECT_NE(identity_of({"e", "b", "k", "1", 1}), identity_of({"e", "b", "k", "", 11}));
  // Golden bytes: a change of the format needs another magic.
  EXPECT_EQ(encode_block({"http://e", "b", "k", "etag", 3}, "content").substr(0, 8), "TYBLOCK1");
  EXPECT_EQ(encode_block({"http://e", "b", "k", "etag", 3}, "content").substr(12),
            std::string("\x17\0\0\0", 4) + "8:http://e1:b1:k4:etag3content");
}

}  // namespace
}  // namespace trainyard::cache

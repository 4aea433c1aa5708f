#include "cache/block_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
    ASSERT_EQ(::utimensat(AT_FDCWD, path(id).c_str(), times, 0), 0);
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

TEST_F(BlockCacheTest, BlocksSurviveTheProcessAndAreOfOneVersion) {
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

TEST_F(BlockCacheTest, ABlockUnderAnotherNameIsNotTaken) {
  const auto cache = open();
  ASSERT_TRUE(cache->put(block(0), "zero") && cache->put(block(1), "one"));
  std::filesystem::rename(path(block(0)), path(block(1)));
  EXPECT_FALSE(*cache->get(block(1)));
}

TEST_F(BlockCacheTest, TheLeastRecentlyUsedAreRemovedFirst) {
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

TEST_F(BlockCacheTest, AFullDiskKeepsNothing) {
  const auto cache = *BlockCache::open({directory_.path() + "/blocks", 1 << 30, UINT64_MAX});
  ASSERT_TRUE(cache->put(block(0), "content"));
  EXPECT_FALSE(*cache->get(block(0)));
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

TEST(Blocks, IdentitiesAreEqualOnlyForEqualIds) {
  EXPECT_NE(identity_of({"e", "b", "k1:e", "", 1}), identity_of({"e", "b", "k", "e", 1}));
  EXPECT_NE(identity_of({"e", "b", "k", "1", 1}), identity_of({"e", "b", "k", "", 11}));
  // Golden bytes: a change of the format needs another magic.
  EXPECT_EQ(encode_block({"http://e", "b", "k", "etag", 3}, "content").substr(0, 8), "TYBLOCK1");
  EXPECT_EQ(encode_block({"http://e", "b", "k", "etag", 3}, "content").substr(12),
            std::string("\x17\0\0\0", 4) + "8:http://e1:b1:k4:etag3content");
}

}  // namespace
}  // namespace trainyard::cache

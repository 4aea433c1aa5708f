#include "agent/files/channels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

#include "base/random.hpp"
#include "contract/failure_text.hpp"
#include "objects/memory.hpp"
#include "objects/testing/damaged_objects.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

domain::Channel channel_of(
    std::string uri, domain::Distribution distribution = domain::Distribution::fully_replicated) {
  domain::Channel channel;
  channel.name = "train";
  channel.s3_uri = std::move(uri);
  channel.distribution = distribution;
  return channel;
}

// Returns "a.csv b/c.csv" of a host's share, or the error.
std::string plan(const std::string& prefix, const std::vector<std::string>& keys,
                 domain::HostIndex host = 0, uint32_t hosts = 1, std::optional<int64_t> seed = {}) {
  std::vector<objects::ObjectInfo> listed(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) listed[i].key = keys[i];
  auto channel = channel_of("s3://b/" + prefix, hosts > 1 ? domain::Distribution::sharded_by_s3_key
                                                          : domain::Distribution::fully_replicated);
  channel.shuffle_seed = seed;
  auto found = objects_of_listing(channel, {"b", prefix}, listed);
  if (!found) return found.error().message;
  const auto downloads = share_of_channel(channel, std::move(found->all), {host, hosts});
  if (!downloads) return downloads.error().message;
  std::string text;
  for (const auto& download : *downloads) text += (text.empty() ? "" : " ") + download.path;
  return text;
}

TEST(PlanChannel, PathsAreRelativeToThePrefix) {
  EXPECT_EQ(plan("data/train", {"data/train/a.csv", "data/train/b/c.csv"}), "a.csv b/c.csv");
  EXPECT_EQ(plan("data/train/", {"data/train/a.csv"}), "a.csv");
  EXPECT_EQ(plan("data/train", {"data/train-2/a.csv", "data/train/b.csv"}), "train-2/a.csv b.csv");
  EXPECT_EQ(plan("data/file.csv", {"data/file.csv"}), "file.csv");
  EXPECT_EQ(plan("", {"a", "b/c"}), "a b/c");
  EXPECT_EQ(plan("a", {"ab"}), "ab");
  EXPECT_EQ(plan("d/", {"d/", "d/x/", "d/x//y"}), "x/y");
}

TEST(PlanChannel, KeysThatCannotBeFilesAreRejectedWithAnExplanation) {
  EXPECT_NE(plan("d/", {"d/../evil"}).find("would lead out of its directory"), std::string::npos);
  EXPECT_NE(plan("d", {"d/a/../../../etc/passwd"}).find("would lead out of its directory"),
            std::string::npos);
  EXPECT_NE(plan("d/", {"d/./a"}).find("would lead out of its directory"), std::string::npos);
  EXPECT_NE(plan("d/", {"d/" + std::string(300, 'x')}).find("255"), std::string::npos);
  EXPECT_NE(plan("d/", {std::string("d/a\0b", 5)}).find("NUL"), std::string::npos);
  EXPECT_NE(plan("d/a", {"d/a/a", "d/a"}).find("would be the same file"), std::string::npos);
  EXPECT_NE(plan("d/", {"d/x", "d/x/y"}).find("needs a directory"), std::string::npos);
  EXPECT_EQ(plan("d/", {}), contract::no_objects_text("s3://b/d/"));
  EXPECT_EQ(plan("d/", {"d/", "d/x/"}), contract::no_objects_text("s3://b/d/"));
}

TEST(PlanChannel, ShardsAreDistributedRoundRobinAndMayBeEmpty) {
  const std::vector<std::string> keys = {"d/", "d/0", "d/1", "d/2", "d/3", "d/4"};
  EXPECT_EQ(plan("d/", keys, 0, 2), "0 2 4");
  EXPECT_EQ(plan("d/", keys, 1, 2), "1 3");
  EXPECT_EQ(plan("d/", {"d/0"}, 1, 2), "");
}

TEST(PlanChannel, AShuffleChangesTheShards) {
  std::vector<std::string> keys;
  for (char name = 'a'; name < 'k'; ++name) keys.push_back(std::string("d/") + name);
  const auto one = plan("d/", keys, 0, 2, 7), two = plan("d/", keys, 1, 2, 7);
  EXPECT_NE(one, plan("d/", keys, 0, 2));
  EXPECT_NE(one, plan("d/", keys, 0, 2, 8));
  std::string all = one + " " + two;
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.substr(9), "abcdefghij");
}

TEST(SlotOf, CountsTheHostsOfTheChannelsGroups) {
  const std::vector<domain::InstanceGroup> groups = {
      {"a", "ml.m5.large", 2}, {"b", "ml.m5.large", 3}, {"c", "ml.m5.large", 1}};
  const auto slot = [&](const std::vector<std::string>& names,
                        domain::HostIndex host) -> std::string {
    auto channel = channel_of("s3://b/d");
    channel.groups = names;
    const auto found = slot_of(channel, groups, host);
    return found ? std::to_string(found->host) + "/" + std::to_string(found->hosts) : "none";
  };
  EXPECT_EQ(slot({}, 0), "0/6");
  EXPECT_EQ(slot({}, 5), "5/6");
  EXPECT_EQ(slot({"b"}, 1), "none");
  EXPECT_EQ(slot({"b"}, 2), "0/3");
  EXPECT_EQ(slot({"a", "c"}, 1), "1/3");
  EXPECT_EQ(slot({"a", "c"}, 5), "2/3");
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() { EXPECT_TRUE(objects_->create_bucket("data", "eu-west-1")); }
  void put(const std::string& key, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*objects_, "data", key, content));
  }
  Result<ListedShare> download(const domain::Channel& channel) {
    const auto base = Tree::open(directory_.path());
    auto share = TRY(list_share(*objects_, channel, {0, 1}, nullptr, interruption_));
    TRY(download_share(*objects_, share.downloads, *base->make("train"), interruption_));
    return share;
  }

  os::MachineClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  os::TemporaryDirectory directory_;
  Interruption interruption_;
};

TEST_F(DownloadTest, FetchesEveryObject) {
  for (int i = 0; i < 50; ++i)
    put("in/" + std::to_string(i % 5) + "/" + std::to_string(i),
        std::string(static_cast<size_t>(i) * 1000, 'x'));
  put("other", "not asked for");
  const auto done = download(channel_of("s3://data/in/"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->downloads.size(), 50u);
  EXPECT_EQ(bytes_of(done->downloads), 49u * 50 / 2 * 1000);
  EXPECT_EQ(done->prefix_uri, "s3://data/in/");
  for (int i = 0; i < 50; ++i) {
    const auto path =
        directory_.path() + "/train/" + std::to_string(i % 5) + "/" + std::to_string(i);
    EXPECT_EQ(os::read_file(path)->size(), static_cast<size_t>(i) * 1000);
  }
}

TEST_F(DownloadTest, ReportsAMissingBucketAndAnEmptyPrefix) {
  EXPECT_EQ(download(channel_of("s3://nowhere/in")).error().message,
            "bucket nowhere not found (s3://nowhere/in)");
  EXPECT_EQ(
      download(channel_of("s3://data/none")).error().message,
      "No S3 objects found under S3 URL \"s3://data/none\" given in input data source. Please "
      "ensure that objects exist under that S3 prefix.");
}

// As in the manifest next to the data: prefix and entry form the key, for any prefix.
TEST_F(DownloadTest, PrefixAndEntryFormTheKey) {
  put("in/a", "1");
  put("in/b/c", "2");
  const std::pair<const char*, const char*> cases[] = {{"s3://data/in/", "s3://data/in/ a b/c"},
                                                       {"s3://data/in", "s3://data/in/ a b/c"},
                                                       {"s3://data/i", "s3://data/ in/a in/b/c"},
                                                       {"s3://data/in/b", "s3://data/in/b/ c"},
                                                       {"s3://data", "s3://data/ in/a in/b/c"}};
  for (const auto& [uri, expected] : cases) {
    const auto done = download(channel_of(uri));
    ASSERT_TRUE(done) << uri;
    std::string actual = done->prefix_uri;
    for (const auto& key : done->keys) actual += " " + key;
    EXPECT_EQ(actual, expected) << uri;
  }
}

TEST_F(DownloadTest, AManifestNamesItsObjects) {
  put("deep/in/a", "1");
  put("deep/in/b/c", "2");
  put("deep/in/d", "not named");
  put("list", R"([{"prefix":"s3://data/deep/"},"in/a","in/b/c"])");
  auto channel = channel_of("s3://data/list");
  channel.s3_data_type = "ManifestFile";
  const auto done = download(channel);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->prefix_uri, "s3://data/deep/");
  EXPECT_EQ(done->keys, (std::vector<std::string>{"in/a", "in/b/c"}));
  EXPECT_EQ(*os::read_file(directory_.path() + "/train/in/b/c"), "2");
  EXPECT_FALSE(os::exists(directory_.path() + "/train/in/d"));

  put("list", R"([{"prefix":"s3://data/deep/"},"../x"])");
  EXPECT_NE(download(channel).error().message.find("would lead out of its directory"),
            std::string::npos);
  put("list", R"([{"prefix":"s3://data/deep/"},"in/none"])");
  EXPECT_EQ(download(channel).error().kind, Kind::not_found);
  put("list", "{}");
  EXPECT_NE(download(channel).error().message.find("s3://data/list: a manifest must be"),
            std::string::npos);
  channel.s3_uri = "s3://data/no-list";
  EXPECT_EQ(download(channel).error().message, "object s3://data/no-list not found");
}

// The object has more than one part, the last one shorter.
TEST_F(DownloadTest, LargeObjectsAreFetchedInParts) {
  std::string content(2 * kPieceBytes + 12345, '\0');
  for (size_t i = 0; i < content.size(); i += 4096) content[i] = static_cast<char>(i / 4096);
  put("in/large", content);
  const std::string path = directory_.path() + "/train/large";
  ASSERT_TRUE(os::make_directories(directory_.path() + "/train"));
  ASSERT_TRUE(os::write_file(path, std::string(3 * kPieceBytes, 'x')));
  const auto done = download(channel_of("s3://data/in/"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*os::read_file(path, 256 << 20) == content);
}

TEST_F(DownloadTest, ADamagedObjectIsFetchedOnceMore) {
  objects::DamagedObjects damaged(*objects_);
  const auto fetched = [&](const std::string& key, uint64_t bytes,
                           const char* algorithm) -> Result<bool> {
    objects::PutOptions options;
    options.checksums[algorithm] = "";
    const std::string content(bytes, 'c');
    const auto info = TRY(objects::write_all(*objects_, "data", key, content, options));
    const auto tree = TRY(Tree::open(directory_.path()));
    damaged.gets = 0;
    TRY(fetch_all(damaged, {{"data", key, key, bytes, info.etag}}, tree, interruption_));
    return TRY(os::read_file(directory_.path() + "/" + key, 256 << 20)) == content;
  };
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    damaged.damaged = 1;
    EXPECT_TRUE(*fetched("whole", 300'000, algorithm)) << algorithm;
    EXPECT_EQ(damaged.gets, 2);
    damaged.damaged = INT_MAX;
    const auto failed = fetched("whole", 300'000, algorithm);
    ASSERT_FALSE(failed) << algorithm;
    EXPECT_TRUE(failed.error().is(objects::Fault::bytes_damaged));
    EXPECT_EQ(damaged.gets, 2);
  }
  for (const char* algorithm : {"crc32c", "crc64nvme"}) {
    damaged.damaged = 1;
    EXPECT_TRUE(*fetched("pieces", kPieceBytes + 5, algorithm)) << algorithm;
    EXPECT_EQ(damaged.gets, 4);
    damaged.damaged = INT_MAX;
    const auto failed = fetched("pieces", kPieceBytes + 5, algorithm);
    ASSERT_FALSE(failed) << algorithm;
    EXPECT_TRUE(failed.error().is(objects::Fault::bytes_damaged));
    EXPECT_EQ(failed.error().message.find("key 'pieces': the bytes do not match"), 0u)
        << failed.error().message;
  }
}

TEST_F(DownloadTest, EndsAtAnInterruption) {
  put("in/a", "1");
  interruption_.order();
  EXPECT_EQ(download(channel_of("s3://data/in")).error().kind, Kind::cancelled);
}

TEST(CheckDiskSpace, AddsDeclaredLengths) {
  const auto check = [](const std::vector<uint64_t>& lengths, uint64_t free_bytes) {
    std::vector<Download> downloads;
    for (const uint64_t length : lengths) downloads.push_back({"b", "k", "k", length, "e"});
    const auto checked = check_disk_space(downloads, free_bytes, "s3://b/");
    EXPECT_TRUE(checked || checked.error().kind == Kind::exhausted);
    return checked ? "" : checked.error().message;
  };
  const uint64_t two_gib = uint64_t(1) << 31, four_gib = uint64_t(1) << 32;
  EXPECT_EQ(check({}, 0), "");
  EXPECT_EQ(check({0}, 0), "");
  EXPECT_EQ(check({two_gib, two_gib}, four_gib), "");
  EXPECT_EQ(
      check({two_gib, two_gib, 1}, four_gib),
      "the disk is too small: s3://b/ has 4.0 GiB, and 4.0 GiB are free; raise the size of the "
      "job's volume, or free space on the machine");
  for (const uint64_t length : {objects::kObjectBytesMax + 1, uint64_t(INT64_MAX), UINT64_MAX})
    EXPECT_NE(check({1, length}, UINT64_MAX).find("key 'k' has a declared length of "),
              std::string::npos)
        << length;
  // 2^50 bytes, 2^14 times: a sum that wraps would be 0.
  const std::vector<uint64_t> many(1 << 14, objects::kObjectBytesMax);
  EXPECT_NE(check(many, 1 << 20).find("the disk is too small"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::agent

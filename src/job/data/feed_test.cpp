#include "data/feed.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/bytes/record_io.hpp"
#include "data/contents.hpp"
#include "objects/memory.hpp"
#include "objects/testing/damaged_objects.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::data {
namespace {

std::string gzip(const std::string& text) {
  z_stream state{};
  EXPECT_EQ(deflateInit2(&state, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

class FeedTest : public testing::Test {
 protected:
  FeedTest() { EXPECT_TRUE(objects_->create_bucket("data", "eu-west-1")); }
  void put(const std::string& key, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*objects_, "data", key, content));
  }
  static Contents contents(const std::vector<std::string>& keys) {
    std::vector<objects::Location> all;
    for (const auto& key : keys) all.push_back({"data", key});
    return Contents(all);
  }
  // Returns all bytes of an epoch, or the error.
  std::string bytes(const Contents& contents, Form form = {}, const Deal& deal = {},
                    uint64_t epoch = 0) {
    Feed feed(*objects_, clock_, form, contents.epoch(epoch, deal));
    std::string all;
    for (;;) {
      auto chunk = feed.next();
      if (!chunk) return chunk.error().message;
      if (!*chunk) return all;
      EXPECT_LE((*chunk)->size(), kChunkBytes + kRecordHeadBytes);
      all.append((*chunk)->data(), (*chunk)->size());
    }
  }
  static std::string records(const std::string& bytes) {
    RecordDecoder decoder(64 << 20);
    decoder.push(bytes);
    std::string text;
    for (;;) {
      const auto record = decoder.next();
      if (!record || !*record) return record && decoder.finish() ? text : "damaged";
      text += ((*record)->size() > 20 ? std::to_string((*record)->size()) : **record) + "|";
    }
  }

  os::MachineClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
};

TEST_F(FeedTest, ReadsObjectsOfAnySizeInOrder) {
  std::string expected;
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    const std::string content(static_cast<size_t>(i % 7) * 300'000,
                              static_cast<char>('a' + i % 26));
    put(std::to_string(i), content);
    keys.push_back(std::to_string(i));
    expected += content;
  }
  EXPECT_TRUE(bytes(contents(keys)) == expected);
}

TEST_F(FeedTest, RecordsAreWholeObjects) {
  put("a", "1234");
  put("b", "");
  put("c", "12345");
  put("d", std::string(3'000'000, 'x'));
  const auto all = bytes(contents({"a", "b", "c", "d"}), {false, true});
  EXPECT_EQ(all.size() % 4, 0u);
  EXPECT_EQ(records(all), "1234||12345|3000000|");
}

TEST_F(FeedTest, GzipIsUnpackedWithAllItsMembers) {
  const std::string large(2'000'000, 'y');
  put("a", gzip("one\n") + gzip("two\n"));
  put("b", gzip(large));
  EXPECT_TRUE(bytes(contents({"a", "b"}), {true, false}) == "one\ntwo\n" + large);
  EXPECT_EQ(records(bytes(contents({"a", "b"}), {true, true})), "one\ntwo\n|2000000|");
  put("c", "plain");
  EXPECT_NE(bytes(contents({"a", "c"}), {true, false}).find("s3://data/c: invalid gzip data"),
            std::string::npos);
  put("d", gzip(large).substr(0, 100));
  EXPECT_EQ(bytes(contents({"d"}), {true, false}),
            "s3://data/d: truncated gzip data: its last block is incomplete");
}

TEST_F(FeedTest, AugmentedLinesBecomeRecordsInTheOrderOfTheirNames) {
  put("1.jpg", "cat's picture");
  put("2.jpg", "dog's picture");
  const std::string text =
      "{\"source-ref\":\"s3://data/"
      "1.jpg\",\"class\":0,\"note\":\"a\"}\n{\"class\":1,\"source-ref\":\"s3://"
      "data/2.jpg\"}\n";
  EXPECT_EQ(records(bytes(*Contents::of_lines(text, {"source-ref", "class"}), {false, true})),
            "cat's picture|0|dog's picture|1|");
  EXPECT_EQ(bytes(*Contents::of_lines(text, {"class"})), "01");
  EXPECT_EQ(bytes(*Contents::of_lines(text, {"note"})),
            "the manifest's record 2: attribute note not found");
}

TEST_F(FeedTest, AnUnreadableItemIsNamedWhenItIsReached) {
  put("a", "1");
  const auto missing = contents({"a", "none", "a"});
  Feed feed(*objects_, clock_, {}, missing.epoch(0, {}));
  EXPECT_EQ((*feed.next())->size(), 1u);
  const auto failed = feed.next();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, Kind::not_found);
  EXPECT_EQ(failed.error().message.find("s3://data/none: "), 0u) << failed.error().message;
  EXPECT_FALSE(feed.next()) << "it is repeated";
}

TEST_F(FeedTest, ADamagedObjectIsFetchedOnceMoreUnlessItsBytesWereRead) {
  objects::PutOptions options;
  options.checksums["crc64nvme"] = "";
  const auto put_with_checksum = [&](const std::string& key, size_t bytes) {
    ASSERT_TRUE(objects::write_all(*objects_, "data", key, std::string(bytes, 'c'), options));
  };
  put_with_checksum("small", 1000);
  put_with_checksum("large", 3 * kChunkBytes);
  objects::DamagedObjects damaged(*objects_);
  const auto small = contents({"small"}), large = contents({"large"});
  for (const bool record_io : {false, true}) {
    damaged.damaged = 1;
    damaged.gets = 0;
    Feed again(damaged, clock_, {false, record_io}, small.epoch(0, {}));
    const auto chunk = again.next();
    ASSERT_TRUE(chunk) << chunk.error().message;
    EXPECT_EQ((*chunk)->size(), record_io ? 1008u : 1000u);
    EXPECT_EQ(damaged.gets, 2);

    damaged.damaged = 2;
    Feed twice(damaged, clock_, {false, record_io}, small.epoch(0, {}));
    const auto failed = twice.next();
    ASSERT_FALSE(failed);
    EXPECT_TRUE(failed.error().is(objects::Fault::bytes_damaged));
  }
  damaged.damaged = 1;
  damaged.gets = 0;
  Feed late(damaged, clock_, {}, large.epoch(0, {}));
  Result<std::optional<std::vector<char>>> next = std::optional<std::vector<char>>();
  size_t chunks = 0;
  while ((next = late.next()) && *next) ++chunks;
  ASSERT_FALSE(next);
  EXPECT_TRUE(next.error().is(objects::Fault::bytes_damaged));
  EXPECT_EQ(next.error().message.find("s3://data/large: the job may have read wrong bytes: GET "),
            0u)
      << next.error().message;
  EXPECT_EQ(chunks, 2u) << "the last one is held back";
  EXPECT_EQ(damaged.gets, 1);
}

TEST_F(FeedTest, ShufflesEachEpochAgainAndSharesOneOrder) {
  std::vector<std::string> keys;
  for (char key = 'a'; key < 'm'; ++key) {
    keys.emplace_back(1, key);
    put(keys.back(), keys.back());
  }
  const auto all = contents(keys);
  const auto sorted = [](std::string text) {
    std::sort(text.begin(), text.end());
    return text;
  };
  std::string first_host;
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    const auto one = bytes(all, {}, {7, true, 0, 2}, epoch),
               two = bytes(all, {}, {7, true, 1, 2}, epoch);
    EXPECT_EQ(sorted(one + two), "abcdefghijkl");
    EXPECT_NE(sorted(one), first_host) << "each epoch has a different half";
    first_host = sorted(one);
  }
  EXPECT_EQ(bytes(all, {}, {{}, true, 1, 2}, 3), "bdfhjl");
  EXPECT_EQ(bytes(all, {}, {{}, true, 12, 13}, 0), "");
}

TEST_F(FeedTest, CanBeDestroyedAtAnyPoint) {
  put("large", std::string(20'000'000, 'x'));
  const auto all = contents({"large", "large", "large"});
  { Feed feed(*objects_, clock_, {}, all.epoch(0, {})); }
  Feed feed(*objects_, clock_, {}, all.epoch(0, {}));
  EXPECT_TRUE(feed.next());
  feed.stop();
  EXPECT_EQ(feed.next().error().kind, Kind::cancelled);
}

TEST_F(FeedTest, AGzipThatIsTooLongForARecordIsNotReadToItsEnd) {
  std::string member = gzip(std::string(1 << 20, '\0')), many;
  for (int mebibytes = 0; mebibytes < 600; ++mebibytes) many += member;
  put("bomb", many + "this is no gzip");
  EXPECT_NE(
      bytes(contents({"bomb"}), {true, true}).find("one RecordIO record holds less than 512 MiB"),
      std::string::npos);
}

}  // namespace
}  // namespace trainyard::data

#include "objects/verifier.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "objects/memory.hpp"
#include "objects/testing/damaged_objects.hpp"

namespace trainyard::objects {
namespace {

const std::string kContent(100'003, 'c');

ObjectInfo info_of(const std::string& algorithm, const std::string& content = kContent) {
  ObjectInfo info;
  info.bytes = content.size();
  info.checksums[algorithm] = to_base64(checksum_of(algorithm, content));
  return info;
}

// Verifies `content` in ranges, which are added in reverse order.
Result<void> verify_in_ranges(const ObjectInfo& info, const std::string& content,
                              uint64_t range_bytes) {
  auto verifier = RangedVerifier::make(info, range_bytes);
  if (!verifier) return not_found("nothing to compare");
  for (size_t i = (content.size() + range_bytes - 1) / range_bytes; i-- > 0;) {
    const auto sum = verifier->start();
    sum->add(std::string_view(content).substr(i * range_bytes, range_bytes));
    verifier->set(i, sum->finish());
  }
  return verifier->finish();
}

TEST(CheapestChecksum, PrefersCrcsAndThenTheEtag) {
  ObjectInfo info;
  info.etag = std::string(32, 'a');
  info.checksums = {{"sha1", "AAAA"}, {"sha256", "AAAA"}};
  EXPECT_EQ(cheapest_checksum(info, EtagUse::compare)->algorithm, "md5");
  EXPECT_EQ(cheapest_checksum(info, EtagUse::ignore)->algorithm, "sha1");
  info.checksums["crc32"] = "AAAAAA==";
  EXPECT_EQ(cheapest_checksum(info, EtagUse::compare)->algorithm, "crc32");
  info.checksums["crc64nvme"] = "AAAAAAAAAAA=";
  EXPECT_EQ(cheapest_checksum(info, EtagUse::compare)->algorithm, "crc64nvme");
}

TEST(CheapestChecksum, LeavesOutCompositeAndUndecodableValues) {
  ObjectInfo info;
  info.etag = "0123456789abcdef0123456789abcdef-3";
  info.checksums = {{"crc32c", "AAAAAA==-3"}, {"crc32", "?"}};
  EXPECT_FALSE(cheapest_checksum(info, EtagUse::compare));
}

TEST(RangedVerifier, ComparesAnyNumberOfRanges) {
  std::string damaged = kContent;
  damaged[70'000] ^= 1;
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme"})
    for (const uint64_t range_bytes : {uint64_t(1'000), uint64_t(99'999), uint64_t(100'003),
                                       uint64_t(100'004), uint64_t(1) << 40}) {
      const auto info = info_of(algorithm);
      EXPECT_TRUE(verify_in_ranges(info, kContent, range_bytes)) << algorithm << range_bytes;
      const auto differs = verify_in_ranges(info, damaged, range_bytes);
      ASSERT_FALSE(differs) << algorithm << range_bytes;
      EXPECT_TRUE(differs.error().is(Fault::bytes_damaged));
    }
}

TEST(RangedVerifier, LeavesOutHashesEmptyObjectsAndTooManyRanges) {
  EXPECT_FALSE(RangedVerifier::make(info_of("sha256"), 1'000));
  EXPECT_FALSE(RangedVerifier::make(info_of("crc32", ""), 1'000));
  auto info = info_of("crc32");
  info.bytes = kObjectBytesMax;
  EXPECT_FALSE(RangedVerifier::make(info, 4 << 20));
}

class VerifiedTest : public testing::Test {
 protected:
  VerifiedTest() { EXPECT_TRUE(memory_->create_bucket("bucket", "")); }
  void put(const std::string& algorithm, const std::string& content = kContent) {
    PutOptions options;
    options.checksums[algorithm] = "";
    ASSERT_TRUE(write_all(*memory_, "bucket", "key", content, options));
  }

  TestClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<Objects> memory_ = make_memory(clock_, random_);
  DamagedObjects objects_{*memory_};
};

TEST_F(VerifiedTest, AReaderFailsInsteadOfReturningTheLastByte) {
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    put(algorithm);
    objects_.damaged = 1;
    const auto reader = *objects_.get("bucket", "key", {});
    std::vector<char> buffer(1'000);
    uint64_t got = 0;
    Result<size_t> bytes = size_t(0);
    while ((bytes = reader->read(buffer)) && *bytes > 0) got += *bytes;
    ASSERT_FALSE(bytes) << algorithm;
    EXPECT_EQ(bytes.error().kind, Kind::corrupt);
    EXPECT_LT(got, kContent.size());
    const std::string stored = to_base64(checksum_of(algorithm, kContent));
    EXPECT_NE(bytes.error().message.find(std::string(algorithm) + " " + stored + ", received "),
              std::string::npos)
        << bytes.error().message;
    EXPECT_FALSE(reader->read(buffer)) << "it is repeated";
  }
}

TEST_F(VerifiedTest, AnEmptyObjectIsRead) {
  put("crc32", "");
  EXPECT_EQ(*read_all(objects_, "bucket", "key", 1), "");
}

TEST_F(VerifiedTest, ReadAllReadsADamagedObjectOnceMore) {
  put("crc32c");
  objects_.damaged = 1;
  EXPECT_EQ(*read_all(objects_, "bucket", "key", 1 << 20), kContent);
  EXPECT_EQ(objects_.gets, 2);
  objects_.damaged = 2;
  const auto failed = read_all(objects_, "bucket", "key", 1 << 20);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().is(Fault::bytes_damaged));
  EXPECT_EQ(objects_.gets, 4);
}

}  // namespace
}  // namespace trainyard::objects

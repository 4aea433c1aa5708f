// Tests copies between stores in memory: existing objects stay, interrupted copies continue.
#include "campaign/copy.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "objects/memory.hpp"

namespace trainyard::campaign {
namespace {

// Counts up: ids of uploads.
class Counter final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override {
    for (auto& byte : bytes) byte = std::byte(++last_);
  }

 private:
  uint8_t last_ = 0;
};

// Two regions' stores, and the number of bytes copied.
class Copies : public testing::Test {
 protected:
  Copies() {
    EXPECT_TRUE(source_->create_bucket("drives", "a"));
    limits_.part_bytes = objects::kPartBytesMin;
    limits_.buffer_bytes = 1 << 20;
  }
  void put(const std::string& key, const std::string& bytes) {
    EXPECT_TRUE(objects::write_all(*source_, "drives", key, bytes));
    clock_.advance(1s);
  }
  // Copies, and is interrupted after `pieces_max` pieces.
  Result<CopyProgress> copy(int64_t pieces_max = INT64_MAX) {
    pieces_ = 0;
    return copy_objects({*source_, "s3://drives/7/", "a"}, {*target_, "s3://copies/x/", "b"},
                        limits_, [&](const CopyProgress&) { return ++pieces_ < pieces_max; });
  }
  std::string got(const std::string& key) {
    const auto bytes = objects::read_all(*target_, "copies", key, 64 << 20);
    return bytes ? *bytes : bytes.error().message;
  }

  TestClock clock_;
  Counter random_;
  std::unique_ptr<objects::Objects> source_ = objects::make_memory(clock_, random_);
  std::unique_ptr<objects::Objects> target_ = objects::make_memory(clock_, random_);
  CopyLimits limits_;
  int64_t pieces_ = 0;
};

TEST_F(Copies, FetchMissingAndChangedObjects) {
  put("7/a", "one");
  put("7/deep/b", "two");
  put("8/c", "another drive");
  const auto progress = *copy();
  EXPECT_EQ(progress.objects_copied, 2);
  EXPECT_EQ(progress.bytes_copied, 6);
  EXPECT_EQ(progress.bytes_moved, 6);
  EXPECT_EQ(progress.bytes_total, 6);
  EXPECT_EQ(got("x/a") + got("x/deep/b"), "onetwo");
  const auto all_pieces = pieces_;
  put("7/a", "new");
  const auto second = *copy();
  EXPECT_EQ(second.bytes_copied, 6);
  EXPECT_EQ(second.bytes_moved, 3);
  EXPECT_LT(pieces_, all_pieces);  // the other object was not copied again
  EXPECT_EQ(got("x/a"), "new");
}

TEST_F(Copies, ContinueWhereTheyWereInterrupted) {
  const std::string large(size_t(objects::kPartBytesMin) * 3 + 100, 'x');
  put("7/large", large);
  const auto cut_off = copy(14);  // amid the third part: a part has five pieces
  EXPECT_EQ(cut_off.error().kind, Kind::cancelled);
  const auto progress = *copy();
  EXPECT_LT(pieces_, 10);  // the first two parts were there
  EXPECT_EQ(progress.bytes_copied, int64_t(large.size()));
  EXPECT_EQ(progress.bytes_moved, int64_t(large.size() - 2 * objects::kPartBytesMin));
  EXPECT_EQ(got("x/large"), large);
  EXPECT_EQ(copy()->bytes_moved, 0);
  EXPECT_EQ(pieces_, 1);  // recognised by the copy's metadata
  EXPECT_TRUE(target_->list_uploads("copies", "")->empty());
}

TEST_F(Copies, ReportMissingBucketsAndInvalidUrls) {
  EXPECT_EQ(copy().error().kind, Kind::not_found);
  EXPECT_EQ(
      copy_objects({*source_, "/data", "a"}, {*target_, "s3://x/", "b"}, limits_, {}).error().kind,
      Kind::invalid);
}

TEST(TargetKey, KeepsThePathBelowTheSource) {
  EXPECT_EQ(target_key("drives/7/a/x", "drives/7/", "copies/7/"), "copies/7/a/x");
  EXPECT_EQ(target_key("drives/7.csv", "drives/7.csv", "c/"), "c/7.csv");
  EXPECT_EQ(target_key("drives/7.csv", "drives/7.csv", "c/seven.csv"), "c/seven.csv");
  EXPECT_EQ(target_key("part-1", "part", ""), "part-1");
}

}  // namespace
}  // namespace trainyard::campaign

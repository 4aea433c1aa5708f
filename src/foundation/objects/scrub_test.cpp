#include "objects/scrub.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/random.hpp"
#include "objects/directory.hpp"
#include "objects/directory/key_path.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::objects {
namespace {

class ScrubTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_directory(path(), clock_, random_);
    ASSERT_TRUE(opened) << opened.error().message;
    objects_ = std::move(*opened);
    for (const char* bucket : {"first", "second"})
      ASSERT_TRUE(objects_->create_bucket(bucket, "r"));
    for (const char* key : {"a", "b/c", "d"})
      ASSERT_TRUE(write_all(*objects_, "first", key, std::string(5000, 'x')));
    ASSERT_TRUE(write_all(*objects_, "second", "e", ""));
  }
  std::string path() const { return directory_.path() + "/objects"; }
  std::string file_of(const std::string& key) const {
    return path() + "/buckets/first/keys/" + path_of(key);
  }
  void flip(const std::string& file, size_t at) const {
    std::string bytes = *os::read_file(file);
    bytes[at] = char(bytes[at] ^ 1);
    ASSERT_TRUE(os::write_file(file, bytes));
  }
  ScrubReport scrub(const std::string& bucket = "") const {
    ScrubSettings settings;
    settings.bucket = bucket;
    auto report = scrub_directory(path(), settings);
    EXPECT_TRUE(report) << report.error().message;
    return *std::move(report);
  }

  os::TemporaryDirectory directory_;
  os::MachineClock clock_;
  SeededRandom random_{3};
  std::unique_ptr<Objects> objects_;
};

TEST_F(ScrubTest, FindsNothingInAnIntactDirectory) {
  const auto report = scrub();
  EXPECT_EQ(report.objects, 4u);
  EXPECT_EQ(report.bytes, 15'000u);
  EXPECT_TRUE(report.broken.empty() && report.whole);
  EXPECT_EQ(scrub("second").objects, 1u);
}

TEST_F(ScrubTest, NamesEachBrokenObject) {
  flip(file_of("b/c"), 4000);
  ASSERT_EQ(truncate(file_of("d").c_str(), 4000), 0);
  const auto report = scrub();
  EXPECT_EQ(report.objects, 4u);
  ASSERT_EQ(report.broken.size(), 2u);
  EXPECT_EQ(report.broken[0].bucket, "first");
  EXPECT_EQ(report.broken[0].key, "b/c");
  EXPECT_NE(report.broken[0].why.find("checksum"), std::string::npos) << report.broken[0].why;
  EXPECT_EQ(report.broken[1].key, "d");
  EXPECT_TRUE(scrub("second").broken.empty());
}

TEST_F(ScrubTest, FindsABrokenPart) {
  const std::string id = *objects_->start_upload("second", "big");
  auto writer = *objects_->put_part("second", "big", id, 1);
  ASSERT_TRUE(writer->write(std::string_view("some bytes")));
  ASSERT_TRUE(objects_->complete_upload("second", "big", id, {{1, writer->commit()->etag}}));
  EXPECT_TRUE(scrub().broken.empty());
  flip(path() + "/buckets/second/parts/" + id + "/00001", 3);
  ASSERT_EQ(scrub().broken.size(), 1u);
  EXPECT_NE(scrub().broken[0].why.find("part 1"), std::string::npos);
  ASSERT_EQ(unlink((path() + "/buckets/second/parts/" + id + "/00001").c_str()), 0);
  EXPECT_EQ(scrub().broken.size(), 1u);
}

TEST_F(ScrubTest, ReportsAnObjectInTheFileOfAnotherKey) {
  ASSERT_TRUE(os::write_file(file_of("a"), *os::read_file(file_of("d"))));
  ASSERT_EQ(scrub().broken.size(), 1u);
  EXPECT_NE(scrub().broken[0].why.find("'d'"), std::string::npos);
}

TEST_F(ScrubTest, ReportsProgressAndEndsOnRequest) {
  uint64_t calls = 0;
  ScrubSettings settings;
  settings.may_continue = [&](const ScrubProgress& progress) {
    EXPECT_GE(progress.bytes_total, 15'000u);
    EXPECT_EQ(progress.bytes, 5'000 * ++calls);
    return calls < 2;
  };
  const auto report = scrub_directory(path(), settings);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->whole);
  EXPECT_EQ(calls, 2u);
}

TEST_F(ScrubTest, DoesNotReportAnObjectThatIsReplacedMeanwhile) {
  bool replaced = false;
  ASSERT_TRUE(write_all(*objects_, "first", "d", std::string(3 << 20, 'y')));
  ScrubSettings settings;
  settings.may_continue = [&](const ScrubProgress& progress) {
    // Replaces d while it is being read.
    if (progress.bytes > 12'000 && !replaced) {
      replaced = true;
      flip(file_of("d"), 2 << 20);
      EXPECT_TRUE(write_all(*objects_, "first", "d", "new"));
    }
    return true;
  };
  const auto report = scrub_directory(path(), settings);
  ASSERT_TRUE(report);
  EXPECT_TRUE(replaced);
  EXPECT_TRUE(report->broken.empty());
}

TEST_F(ScrubTest, RejectsMissingDirectoriesAndBuckets) {
  EXPECT_EQ(scrub_directory(directory_.path(), {}).error().kind, Kind::not_found);
  ScrubSettings settings;
  settings.bucket = "third";
  EXPECT_EQ(scrub_directory(path(), settings).error().kind, Kind::not_found);
  settings.bucket = "../first";
  EXPECT_EQ(scrub_directory(path(), settings).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::objects

#include "agent/files/listing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>

#include "base/random.hpp"
#include "objects/forwarding.hpp"
#include "objects/memory.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

std::vector<objects::ObjectInfo> numbered(size_t count) {
  std::vector<objects::ObjectInfo> all(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    all[i].key = "in/" + std::string(7 - number.size(), '0') + number;
  }
  return all;
}

// Lists pages of ten keys, and counts them.
class SmallPages final : public objects::ForwardingObjects {
 public:
  using ForwardingObjects::ForwardingObjects;
  Result<objects::ListPage> list(const std::string& bucket,
                                 const objects::ListQuery& query) override {
    ++pages;
    auto small = query;
    small.keys_max = 10;
    return ForwardingObjects::list(bucket, small);
  }
  std::atomic<int> pages = 0;
};

class ListingTest : public testing::Test {
 protected:
  ListingTest() { EXPECT_TRUE(objects_->create_bucket("data", "eu-west-1")); }
  void put(const std::string& key) { ASSERT_TRUE(objects::write_all(*objects_, "data", key, "x")); }
  std::vector<std::string> list(const std::vector<std::string>& marks,
                                const std::string& prefix = "in/") {
    const auto listed = list_all(store_, {"data", prefix}, interruption_, marks);
    EXPECT_TRUE(listed) << listed.error().message;
    std::vector<std::string> keys;
    for (const auto& each : *listed) keys.push_back(each.key);
    return keys;
  }

  os::MachineClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  SmallPages store_{*objects_};
  os::TemporaryDirectory directory_;
  Interruption interruption_;
};

TEST_F(ListingTest, AnyMarksGiveTheSameListing) {
  std::mt19937 random(16);
  for (int i = 0; i < 150; ++i) put("in/" + std::to_string(random() % 1000));
  put("before");
  put("jn");
  const auto expected = list({});
  for (int round = 0; round < 50; ++round) {
    std::set<std::string> marks;
    for (unsigned i = 0; i < random() % kListedRangesMax; ++i)
      // Existing keys, absent keys, and keys with another prefix.
      marks.insert((random() % 8 == 0 ? "jn/" : "in/") + std::to_string(random() % 1000));
    EXPECT_EQ(list({marks.begin(), marks.end()}), expected);
  }
}

TEST_F(ListingTest, MarksDivideTheRequests) {
  for (const auto& each : numbered(100)) put(each.key);
  EXPECT_EQ(list({"in/0000024", "in/0000049", "in/0000074"}).size(), 100u);
  EXPECT_EQ(store_.pages, 4 * 3);
}

TEST_F(ListingTest, ErrorsOfTheObjectStoreAreReturned) {
  EXPECT_EQ(list_all(store_, {"none", ""}, interruption_, {"a", "b"}).error().kind,
            Kind::not_found);
}

TEST(Marks, DivideLongListingsOnly) {
  EXPECT_TRUE(marks_of({}).empty());
  EXPECT_TRUE(marks_of(numbered(2 * kRangeObjectsMin - 1)).empty());
  EXPECT_EQ(marks_of(numbered(2 * kRangeObjectsMin)), std::vector<std::string>{"in/0001999"});
  const auto marks = marks_of(numbered(100'000));
  ASSERT_EQ(marks.size(), kListedRangesMax - 1);
  EXPECT_EQ(marks.front(), "in/0006249");
  EXPECT_EQ(marks.back(), "in/0093749");
}

TEST(Marks, RoundTrip) {
  const std::vector<std::string> marks{std::string("a\xff\n"), "b"};
  EXPECT_EQ(*decode_marks(encode_marks(marks)), marks);
  for (const char* wrong : {"", "{}", "[1]", R"(["6"])", R"([""])", R"(["62","61"])", "[[]]"})
    EXPECT_FALSE(decode_marks(wrong)) << wrong;
  EXPECT_FALSE(decode_marks(encode_marks({std::string(1025, 'a')})));
  std::vector<std::string> many;
  for (char each = 'a'; many.size() < kListedRangesMax; ++each) many.emplace_back(1, each);
  EXPECT_FALSE(decode_marks(encode_marks(many)));
}

TEST_F(ListingTest, MarksAreKeptByStoreAndPrefix) {
  const ListingMarks marks(directory_.path() + "/listings", "http://e"),
      others(directory_.path() + "/listings", "http://f");
  EXPECT_TRUE(marks.read({"data", "in/"}).empty());
  ASSERT_TRUE(marks.write({"data", "in/"}, numbered(2 * kRangeObjectsMin)));
  EXPECT_EQ(marks.read({"data", "in/"}).size(), 1u);
  EXPECT_TRUE(marks.read({"data", "in"}).empty());
  EXPECT_TRUE(others.read({"data", "in/"}).empty());
  ASSERT_TRUE(marks.write({"data", "short"}, numbered(10)));
  EXPECT_EQ(os::list_directory(directory_.path() + "/listings")->size(), 1u);
}

TEST_F(ListingTest, CorruptMarksAreIgnored) {
  const std::string directory = directory_.path() + "/listings";
  const ListingMarks marks(directory, "http://e");
  ASSERT_TRUE(marks.write({"data", ""}, numbered(2 * kRangeObjectsMin)));
  const auto names = *os::list_directory(directory);
  ASSERT_TRUE(os::write_file(directory + "/" + names.at(0), "[", 0600));
  EXPECT_TRUE(marks.read({"data", ""}).empty());
}

}  // namespace
}  // namespace trainyard::agent

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/text.hpp"
#include "objects/checksum.hpp"
#include "objects/testing/directory_fixture.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

class PartsTest : public DirectoryTest {
 protected:
  // Starts an upload with two full parts and a short one.
  void upload(const std::string& key) {
    id_ = *objects_->start_upload("bucket", key);
    parts_.clear();
    whole_.clear();
    for (uint32_t number : {1, 2, 4})
      put_part(key, number, std::string(number == 4 ? 100 : kPartBytesMin, 'a' + number));
  }
  void put_part(const std::string& key, uint32_t number, std::string bytes) {
    for (size_t at = 0; at < bytes.size(); at += 1000) bytes[at] = char('0' + at / 1000 % 10);
    auto writer = objects_->put_part("bucket", key, id_, number);
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->write(bytes));
    const auto info = (*writer)->commit();
    ASSERT_TRUE(info) << info.error().message;
    parts_.push_back({number, info->etag});
    whole_ += bytes;
  }
  std::string in_upload(const std::string& name) const {
    return path() + "/buckets/bucket/uploads/" + id_ + "/" + name;
  }
  std::string in_parts(const std::string& name) const {
    return path() + "/buckets/bucket/parts/" + id_ + "/" + name;
  }
  void move_back() const {
    const std::string bucket = path() + "/buckets/bucket";
    std::filesystem::rename(bucket + "/parts/" + id_, bucket + "/uploads/" + id_);
  }
  static ino_t inode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  }
  std::string read(const std::string& key, std::optional<Range> range = {}) {
    const auto reader = objects_->get("bucket", key, range);
    if (!reader) return reader.error().message;
    std::string bytes;
    std::vector<char> buffer(300'007);
    for (;;) {
      const auto read = (*reader)->read(buffer);
      if (!read) return read.error().message;
      if (*read == 0) return bytes;
      bytes.append(buffer.data(), *read);
    }
  }
  void SetUp() override {
    open();
    ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  }

  std::string id_, whole_;
  std::vector<PartInfo> parts_;
};

TEST_F(PartsTest, CompletingAnUploadCopiesNothing) {
  upload("big");
  const ino_t second = inode(in_upload("00002"));
  const auto info = objects_->complete_upload("bucket", "big", id_, parts_);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(inode(in_parts("00002")), second) << "the part's file is the object's";
  EXPECT_LT(std::filesystem::file_size(file_of("big")), 4096u);
  EXPECT_EQ(objects_->head("bucket", "big")->bytes, whole_.size());
  EXPECT_EQ(objects_->list("bucket", {})->objects.at(0).bytes, whole_.size());
  EXPECT_TRUE(read("big") == whole_);
  open();
  EXPECT_TRUE(read("big") == whole_);
  for (const uint64_t first :
       {uint64_t(0), uint64_t(1), kPartBytesMin - 1, kPartBytesMin, kPartBytesMin + 1,
        2 * kPartBytesMin - 1, 2 * kPartBytesMin, 2 * kPartBytesMin + 99})
    for (const uint64_t bytes :
         {uint64_t(1), uint64_t(2), kPartBytesMin, kPartBytesMin + 1, 2 * kPartBytesMin + 100})
      EXPECT_TRUE(read("big", Range{first, first + bytes - 1, {}}) == whole_.substr(first, bytes))
          << first << " " << bytes;
  EXPECT_TRUE(read("big", Range{0, UINT64_MAX, 150}) == whole_.substr(whole_.size() - 150));
}

TEST_F(PartsTest, ReaderReturnsThePartsAndTheirChecksums) {
  const std::string first(kPartBytesMin, 'a'), last = "end";
  id_ = *objects_->start_upload("bucket", "summed", PutOptions{.checksums = {{"sha256", ""}}});
  put_part("summed", 2, first);
  put_part("summed", 3, last);
  const std::string sum = to_base64(checksum_of("sha256", whole_.substr(kPartBytesMin)));
  ASSERT_TRUE(objects_->complete_upload("bucket", "summed", id_, parts_));
  open();
  const auto reader = objects_->get("bucket", "summed");
  ASSERT_TRUE(reader) << reader.error().message;
  const auto parts = (*reader)->parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].number, 2u);
  EXPECT_EQ(parts[0].bytes, kPartBytesMin);
  EXPECT_EQ(parts[1].number, 3u);
  EXPECT_EQ(parts[1].bytes, last.size());
  EXPECT_EQ(parts[1].etag, parts_[1].etag);
  EXPECT_EQ(*(*reader)->part_checksums(3), (std::map<std::string, std::string>{{"sha256", sum}}));
  std::filesystem::remove(in_parts("00003"));
  EXPECT_EQ((*reader)->part_checksums(3).error().kind, Kind::corrupt);
  ASSERT_TRUE(write_all(*objects_, "bucket", "plain", "x"));
  EXPECT_TRUE((*objects_->get("bucket", "plain"))->parts().empty());
}

TEST_F(PartsTest, SetTagsKeepsTheParts) {
  id_ = *objects_->start_upload("bucket", "big", PutOptions{.tags = {{"team", "blue"}}});
  put_part("big", 1, std::string(kPartBytesMin, 'a'));
  put_part("big", 2, "end");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  const auto modified = objects_->head("bucket", "big")->modified;
  EXPECT_EQ(objects_->head("bucket", "big")->tags.at("team"), "blue");
  const auto stored = objects_->statistics()->buckets.at("bucket");
  ASSERT_TRUE(objects_->set_tags("bucket", "big", {{"team", "red"}}));
  open();
  ASSERT_TRUE(objects_->clean_up(clock_.now() + 48h, 1h));
  EXPECT_EQ(objects_->head("bucket", "big")->tags.at("team"), "red");
  EXPECT_EQ(objects_->head("bucket", "big")->modified, modified);
  EXPECT_TRUE(read("big") == whole_);
  EXPECT_EQ(objects_->statistics()->buckets.at("bucket").bytes, stored.bytes);
  EXPECT_EQ(objects_->statistics()->buckets.at("bucket").objects, 1u);
  ASSERT_TRUE(write_all(*objects_, "bucket", "plain", "x", PutOptions{.tags = {{"a", "b"}}}));
  ASSERT_TRUE(objects_->set_tags("bucket", "plain", {}));
  open();
  EXPECT_TRUE(objects_->head("bucket", "plain")->tags.empty());
  ASSERT_TRUE(objects_->set_bucket_tags("bucket", {{"of", "the bucket"}}));
  open();
  EXPECT_EQ(objects_->head_bucket("bucket")->tags.at("of"), "the bucket");
  EXPECT_EQ(read("plain"), "x");
}

TEST_F(PartsTest, CompletingAnUploadRemovesUnlistedParts) {
  upload("big");
  parts_.erase(parts_.begin() + 1);
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  EXPECT_FALSE(os::exists(in_parts("00002")));
  EXPECT_EQ(objects_->head("bucket", "big")->bytes, kPartBytesMin + 100);
}

TEST_F(PartsTest, ReaderContinuesWhileTheObjectIsReplaced) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  auto reader = *objects_->get("bucket", "big");
  std::vector<char> buffer(1 << 20);
  std::string bytes;
  const auto some = reader->read(buffer);
  ASSERT_TRUE(some);
  bytes.append(buffer.data(), *some);
  ASSERT_TRUE(write_all(*objects_, "bucket", "big", "new"));
  EXPECT_TRUE(os::exists(in_parts("00004")));
  for (;;) {
    const auto more = reader->read(buffer);
    ASSERT_TRUE(more) << more.error().message;
    if (*more == 0) break;
    bytes.append(buffer.data(), *more);
  }
  EXPECT_TRUE(bytes == whole_);
  reader.reset();
  EXPECT_FALSE(os::exists(in_parts("")));
  EXPECT_EQ(read("big"), "new");
}

TEST_F(PartsTest, RemovingTheObjectRemovesItsParts) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  ASSERT_TRUE(objects_->remove("bucket", "big"));
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/buckets/bucket/parts"));
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/temporary"));
  EXPECT_TRUE(objects_->delete_bucket("bucket"));
}

TEST_F(PartsTest, ReadingDetectsADamagedPart) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  std::string bytes = *os::read_file(in_parts("00002"));
  bytes[77] = char(bytes[77] ^ 1);
  ASSERT_TRUE(os::write_file(in_parts("00002"), bytes));
  EXPECT_NE(read("big").find("part 2 of big"), std::string::npos);
  ASSERT_EQ(truncate(in_parts("00002").c_str(), 1000), 0);
  EXPECT_NE(read("big").find("part of big"), std::string::npos);
  EXPECT_TRUE(read("big", Range{0, 99, {}}) == whole_.substr(0, 100)) << "the first part is intact";
}

TEST_F(PartsTest, ConcurrentCompletionsGetTheSameAnswer) {
  upload("big");
  std::vector<Result<ObjectInfo>> answers(8, invalid("none yet"));
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers)
      threads.emplace_back(
          [&] { answer = objects_->complete_upload("bucket", "big", id_, parts_); });
  }
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->etag, answers[0]->etag);
    EXPECT_EQ(answer->modified, answers[0]->modified);
  }
  EXPECT_TRUE(read("big") == whole_);
}

// Simulates a crash after the list was written and before the parts were moved.
TEST_F(PartsTest, AfterACrashRejectsChangesOfPartsThroughTheirUpload) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  objects_.reset();
  move_back();
  open();
  EXPECT_TRUE(read("big") == whole_);
  auto writer = objects_->put_part("bucket", "big", id_, 1);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(std::string_view("another")));
  EXPECT_TRUE((*writer)->commit().error().is(Fault::upload_missing));
  EXPECT_TRUE(read("big") == whole_);
}

TEST_F(PartsTest, AfterACrashAbortKeepsThePartsOfTheObject) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  objects_.reset();
  move_back();
  open();
  EXPECT_TRUE(objects_->abort_upload("bucket", "big", id_).error().is(Fault::upload_missing));
  EXPECT_TRUE(os::exists(in_parts("00001")));
  EXPECT_TRUE(read("big") == whole_);
}

TEST_F(PartsTest, CleanUpMovesPartsAndRemovesUnusedOnes) {
  upload("big");
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id_, parts_));
  objects_.reset();
  move_back();
  open();
  ASSERT_TRUE(objects_->clean_up(clock_.now(), 1h));
  EXPECT_TRUE(os::exists(in_parts("00001")));
  EXPECT_TRUE(read("big") == whole_);
  // This is the state after a crash between the replacement of an object and the removal of its
  // parts.
  ASSERT_TRUE(os::write_file(file_of("big"), "not an object"));
  ASSERT_TRUE(objects_->clean_up(clock_.now(), 1h));
  EXPECT_TRUE(os::exists(in_parts("00001"))) << "the object may still be repaired";
  std::filesystem::remove(file_of("big"));
  ASSERT_TRUE(objects_->clean_up(clock_.now(), 1h));
  EXPECT_FALSE(os::exists(in_parts("00001")));
}

TEST_F(PartsTest, CleanUpRemovesExpiredUploads) {
  upload("old");
  ASSERT_TRUE(objects_->clean_up(clock_.now() + 1h, 2h));
  EXPECT_EQ(objects_->list_uploads("bucket", "")->size(), 1u);
  ASSERT_TRUE(objects_->clean_up(clock_.now() + 3h, 2h));
  EXPECT_EQ(objects_->list_uploads("bucket", "")->size(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/buckets/bucket/uploads"));
}

}  // namespace
}  // namespace trainyard::objects

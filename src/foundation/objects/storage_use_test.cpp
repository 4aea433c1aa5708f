// Tests quotas of buckets and users over a directory: counting, rejection, and equal counts after
// opening it again.
#include "objects/storage_use.hpp"

#include <gtest/gtest.h>

#include "objects/testing/directory_fixture.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

// Outside the unnamed namespace, where argument-dependent lookup finds it.
static bool operator==(const StoredAmount& a, const StoredAmount& b) {
  return a.bytes == b.bytes && a.objects == b.objects;
}

namespace {

class StorageUseTest : public DirectoryTest {
 protected:
  void SetUp() override { open_with({}); }
  void open_with(StorageQuotas quotas) {
    objects_.reset();
    quotas_ = std::make_shared<const StorageQuotas>(std::move(quotas));
    objects_ = *open_directory(path(), clock_, random_, {.quotas = [this] { return quotas_; }});
    if (objects_->head_bucket("bucket")) return;
    ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  }
  void set(StorageQuotas quotas) {
    quotas_ = std::make_shared<const StorageQuotas>(std::move(quotas));
  }

  Result<void> put(const std::string& key, size_t bytes, const std::string& owner = "ann",
                   bool announced = true) {
    PutOptions options{.owner = owner};
    if (announced) options.bytes = bytes;
    const auto writer = TRY(objects_->put("bucket", key, options));
    for (size_t done = 0; done < bytes; done += 100)
      TRY(writer->write(std::string(std::min<size_t>(100, bytes - done), 'x')));
    TRY(writer->commit());
    return ok();
  }
  Result<std::string> put_part(const std::string& id, uint32_t number, size_t bytes,
                               const std::string& key = "big") {
    const auto writer = TRY(objects_->put_part("bucket", key, id, number, {.bytes = bytes}));
    TRY(writer->write(std::string(bytes, 'p')));
    return TRY(writer->commit()).etag;
  }
  StoredAmount used() { return objects_->statistics()->buckets["bucket"]; }
  // Returns the same counts, computed from the files.
  StoredAmount counted() {
    open_with(*quotas_);
    return used();
  }

  std::shared_ptr<const StorageQuotas> quotas_;
};

bool is_refused(const Result<void>& result) {
  return !result && result.error().is(Fault::quota_exceeded);
}

TEST_F(StorageUseTest, CountsPutsReplacementsRemovalsAndUploads) {
  ASSERT_TRUE(put("a", 1000));
  ASSERT_TRUE(put("b/c", 10, "bob", false));
  EXPECT_EQ(used(), (StoredAmount{1010, 2}));
  ASSERT_TRUE(put("a", 300));
  EXPECT_EQ(used(), (StoredAmount{310, 2}));
  {
    const auto dropped = *objects_->put("bucket", "d", {.bytes = 500, .owner = "ann"});
    EXPECT_EQ(used(), (StoredAmount{810, 3}));
  }
  EXPECT_EQ(used(), (StoredAmount{310, 2}));
  ASSERT_TRUE(objects_->remove("bucket", "b/c"));
  ASSERT_TRUE(objects_->remove("bucket", "b/c"));
  EXPECT_EQ(used(), (StoredAmount{300, 1}));
  EXPECT_EQ(counted(), (StoredAmount{300, 1}));

  const std::string id = *objects_->start_upload("bucket", "big", {.owner = "ann"});
  ASSERT_TRUE(put_part(id, 1, 40));
  const std::string etag = *put_part(id, 1, 50);
  ASSERT_TRUE(put_part(id, 2, 7));
  EXPECT_EQ(used(), (StoredAmount{357, 1}));
  EXPECT_EQ(counted(), (StoredAmount{357, 1}));
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id, {{1, etag}}));
  EXPECT_EQ(used(), (StoredAmount{350, 2}));
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id, {{1, etag}})) << "repeated";
  EXPECT_EQ(used(), (StoredAmount{350, 2}));
  EXPECT_EQ(counted(), (StoredAmount{350, 2}));
  ASSERT_TRUE(put("big", 1));
  EXPECT_EQ(used(), (StoredAmount{301, 2}));

  const std::string aborted = *objects_->start_upload("bucket", "big", {.owner = "ann"});
  ASSERT_TRUE(put_part(aborted, 1, 40));
  ASSERT_TRUE(objects_->abort_upload("bucket", "big", aborted));
  EXPECT_EQ(used(), (StoredAmount{301, 2}));
  const std::string expired = *objects_->start_upload("bucket", "big", {.owner = "ann"});
  ASSERT_TRUE(put_part(expired, 1, 40));
  ASSERT_TRUE(objects_->clean_up(clock_.now() + 1h, 1s));
  EXPECT_EQ(used(), (StoredAmount{301, 2}));
  for (const char* key : {"a", "big"}) ASSERT_TRUE(objects_->remove("bucket", key));
  const std::string left = *objects_->start_upload("bucket", "big", {.owner = "ann"});
  ASSERT_TRUE(put_part(left, 1, 40));
  ASSERT_TRUE(objects_->delete_bucket("bucket"));
  EXPECT_TRUE(objects_->statistics()->buckets.empty());
}

TEST_F(StorageUseTest, BucketQuotaRejectsPutsAtTheirStartOrWithinTheirBytes) {
  set({.buckets = {{"bucket", {.bytes = 1000, .objects = 3}}}, .users = {}});
  ASSERT_TRUE(put("a", 900));
  const auto refused = objects_->put("bucket", "b", {.bytes = 101, .owner = "bob"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(Fault::quota_exceeded));
  EXPECT_NE(refused.error().message.find("the storage quota of the bucket 'bucket' is "),
            std::string::npos);
  EXPECT_TRUE(is_refused(put("b", 101, "bob", false)));
  EXPECT_EQ(used(), (StoredAmount{900, 1}));
  EXPECT_FALSE(objects_->head("bucket", "b"));
  ASSERT_TRUE(put("b", 100, "bob", false));
  EXPECT_TRUE(is_refused(put("c", 1)));
  ASSERT_TRUE(put("c", 0));
  EXPECT_TRUE(is_refused(put("d", 0))) << "four objects";
  ASSERT_TRUE(objects_->remove("bucket", "a"));
  ASSERT_TRUE(put("d", 900));
  EXPECT_TRUE(is_refused([&]() -> Result<void> {
    TRY(objects_->put("bucket", "e", {.bytes = UINT64_MAX}));
    return ok();
  }()));
}

TEST_F(StorageUseTest, UserQuotaCountsUploadsForTheirOwnerAcrossOpenings) {
  const StorageQuotas quotas{.buckets = {},
                             .users = {{"ann", {.bytes = 1000}}, {"*", {.bytes = 10}}}};
  set(quotas);
  ASSERT_TRUE(put("a", 600));
  EXPECT_TRUE(is_refused(put("b", 11, "bob")));
  ASSERT_TRUE(put("b", 10, "bob"));
  EXPECT_TRUE(is_refused(put("b2", 1, "bob")));
  ASSERT_TRUE(put("nobody", 5000, ""));
  const std::string id = *objects_->start_upload("bucket", "big", {.owner = "ann"});
  const std::string etag = *put_part(id, 1, 400);
  EXPECT_FALSE(put_part(id, 2, 1)) << "parts of a running upload count for the user who started it";
  open_with(quotas);
  EXPECT_TRUE(is_refused(put("c", 1)));
  ASSERT_TRUE(objects_->complete_upload("bucket", "big", id, {{1, etag}}));
  open_with(quotas);
  EXPECT_EQ(objects_->head("bucket", "big")->owner, "ann");
  EXPECT_TRUE(is_refused(put("c", 1)));
  ASSERT_TRUE(put("big", 10, "")) << "another request replaces it";
  ASSERT_TRUE(put("c", 400));
}

TEST_F(StorageUseTest, RunningWritesCountTogether) {
  set({.buckets = {{"*", {.bytes = 100}}}, .users = {}});
  auto first = *objects_->put("bucket", "a", {.bytes = 60});
  EXPECT_TRUE(is_refused(put("b", 60)));
  first.reset();
  EXPECT_TRUE(put("b", 60));
}

TEST_F(StorageUseTest, CountsBrokenReadsAndFilesThatCannotBeRead) {
  ASSERT_TRUE(put("a", 100));
  std::string bytes = *os::read_file(file_of("a"), 10'000);
  bytes[5] ^= 1;
  ASSERT_TRUE(os::write_file_durably(file_of("a"), bytes));
  EXPECT_FALSE(read_all(*objects_, "bucket", "a", 1000));
  EXPECT_EQ(objects_->statistics()->broken_reads, 2u) << "read_all() reads a damaged object twice";
  ASSERT_TRUE(os::write_file_durably(file_of("a"), "cut off"));
  EXPECT_FALSE(objects_->get("bucket", "a"));
  EXPECT_EQ(objects_->statistics()->broken_reads, 3u);
  EXPECT_EQ(counted(), (StoredAmount{7, 1}));
  ASSERT_TRUE(objects_->remove("bucket", "a"));
  EXPECT_EQ(used(), StoredAmount());
}

}  // namespace
}  // namespace trainyard::objects

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "objects/testing/directory_fixture.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

// Fails each disk step of a put, a replacement, an upload and a removal in turn. After the next
// opening all acknowledged objects must exist, unbroken, and no others except that of the last
// operation.
class FaultyDiskTest : public DirectoryTest, public testing::WithParamInterface<int> {
 protected:
  struct Acknowledged {
    bool replaced = false, put = false, uploaded = false, removed = false;
    std::string upload;
  };
  static Acknowledged change(Objects& objects) {
    Acknowledged done;
    done.replaced = bool(write_all(objects, "bucket", "a", "new"));
    done.put = bool(write_all(objects, "bucket", "b/c", "bytes"));
    if (const auto id = objects.start_upload("bucket", "big")) {
      done.upload = *id;
      auto writer = objects.put_part("bucket", "big", *id, 1);
      if (writer && (*writer)->write(std::string_view("part")))
        if (const auto part = (*writer)->commit())
          done.uploaded = bool(objects.complete_upload("bucket", "big", *id, {{1, part->etag}}));
    }
    done.removed = bool(objects.remove("bucket", "d/e"));
    return done;
  }
  std::string content(const std::string& key) {
    const auto bytes = read_all(*objects_, "bucket", key, 100);
    if (bytes) return *bytes;
    return bytes.error().kind == Kind::not_found ? "absent" : bytes.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Errors, FaultyDiskTest, testing::Values(EIO, ENOSPC));

TEST_P(FaultyDiskTest, LosesNothingAcknowledgedAtAnyStep) {
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 500u);
    objects_.reset();
    std::filesystem::remove_all(path());
    NthFileFault faults(nth, GetParam());
    objects_ = *open_directory(path(), clock_, random_, {.faults = &faults});
    ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
    ASSERT_TRUE(write_all(*objects_, "bucket", "a", "old"));
    ASSERT_TRUE(write_all(*objects_, "bucket", "d/e", "there"));
    faults.arm();
    const Acknowledged done = change(*objects_);
    if (faults.struck() && faults.failed() == FileStep::sync && GetParam() == EIO) {
      EXPECT_FALSE(done.removed) << "nothing is acknowledged after a failed sync";
      EXPECT_EQ(objects_->create_bucket("other", "r").error().kind, Kind::unavailable);
      EXPECT_TRUE(objects_->list("bucket", {})) << "reads continue";
    }
    open();
    EXPECT_EQ(content("a") == "new" || (!done.replaced && content("a") == "old"), true)
        << nth << content("a");
    EXPECT_EQ(content("b/c") == "bytes" || (!done.put && content("b/c") == "absent"), true) << nth;
    EXPECT_EQ(content("big") == "part" || (!done.uploaded && content("big") == "absent"), true)
        << nth << content("big");
    EXPECT_EQ(content("d/e") == "absent" || (!done.removed && content("d/e") == "there"), true)
        << nth;
    EXPECT_TRUE(objects_->list("bucket", {}));
    if (!done.upload.empty() && content("big") == "absent") {
      EXPECT_TRUE(objects_->list_parts("bucket", "big", done.upload))
          << "the upload is still there: " << nth;
    }
    EXPECT_TRUE(std::filesystem::is_empty(path() + "/temporary"));
    if (!faults.struck()) {
      EXPECT_TRUE(done.replaced && done.put && done.uploaded && done.removed);
      break;
    }
  }
}

}  // namespace
}  // namespace trainyard::objects

// Tests that a bucket keeps its policy and settings while the store does not answer, and that they
// are deleted with the bucket.
#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "s3/bucket_settings.hpp"
#include "s3/operations.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

// Forwards calls to a store in memory, like a remote store that is not always reachable.
class RemoteStore final : public objects::Objects {
 public:
  using Text = const std::string&;

  explicit RemoteStore(objects::Objects& store) : store_(store) {}
  std::optional<Error> failure;  // of head_bucket

  Result<objects::BucketInfo> head_bucket(Text bucket) override {
    if (failure) return *failure;
    return store_.head_bucket(bucket);
  }
  Result<void> create_bucket(Text bucket, Text region) override {
    return store_.create_bucket(bucket, region);
  }
  Result<void> delete_bucket(Text bucket) override { return store_.delete_bucket(bucket); }
  Result<std::vector<objects::BucketInfo>> list_buckets() override { return store_.list_buckets(); }
  Result<void> set_bucket_tags(Text bucket,
                               const std::map<std::string, std::string>& tags) override {
    return store_.set_bucket_tags(bucket, tags);
  }
  Result<std::unique_ptr<objects::Reader>> get(Text bucket, Text key,
                                               std::optional<objects::Range> range) override {
    return store_.get(bucket, key, range);
  }
  Result<objects::ObjectInfo> head(Text bucket, Text key) override {
    return store_.head(bucket, key);
  }
  Result<std::unique_ptr<objects::Writer>> put(Text bucket, Text key,
                                               const objects::PutOptions& options) override {
    return store_.put(bucket, key, options);
  }
  Result<void> set_tags(Text bucket, Text key,
                        const std::map<std::string, std::string>& tags) override {
    return store_.set_tags(bucket, key, tags);
  }
  Result<void> remove(Text bucket, Text key) override { return store_.remove(bucket, key); }
  Result<objects::ListPage> list(Text bucket, const objects::ListQuery& query) override {
    return store_.list(bucket, query);
  }
  Result<std::string> start_upload(Text bucket, Text key,
                                   const objects::PutOptions& options) override {
    return store_.start_upload(bucket, key, options);
  }
  Result<std::unique_ptr<objects::Writer>> put_part(Text bucket, Text key, Text upload,
                                                    uint32_t part,
                                                    const objects::PutOptions& options) override {
    return store_.put_part(bucket, key, upload, part, options);
  }
  Result<objects::ObjectInfo> complete_upload(Text bucket, Text key, Text upload,
                                              const std::vector<objects::PartInfo>& parts,
                                              const objects::CompleteOptions& options) override {
    return store_.complete_upload(bucket, key, upload, parts, options);
  }
  Result<void> abort_upload(Text bucket, Text key, Text upload) override {
    return store_.abort_upload(bucket, key, upload);
  }
  Result<std::vector<objects::PartInfo>> list_parts(Text bucket, Text key, Text upload) override {
    return store_.list_parts(bucket, key, upload);
  }
  Result<std::vector<objects::UploadInfo>> list_uploads(Text bucket, Text prefix) override {
    return store_.list_uploads(bucket, prefix);
  }

 private:
  objects::Objects& store_;
};

// Adds no operations: those of OperationsWorld would use its own store.
void add_none(OperationTable&, const Settings&, const Services&) {}

struct BucketsWorld : OperationsWorld {
  BucketsWorld() : OperationsWorld(add_none) {
    Services with_remote{.control = control,
                         .logs = *logs,
                         .metrics = *metrics,
                         .objects = remote,
                         .clock = clock,
                         .random = random,
                         .identities = &store};
    add_operations(table, settings, with_remote);
    EXPECT_TRUE(call<s3::CreateBucket>({.bucket = "data"}));
    EXPECT_TRUE(call<s3::PutBucketPolicy>(
        {.bucket = "data",
         .policy = R"({"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*",)"
                   R"("Action":"s3:GetObject","Resource":"arn:aws:s3:::data/*"}]})"}));
    s3::PutPublicAccessBlockRequest in{.bucket = "data"};
    in.public_access_block_configuration.emplace().block_public_policy = true;
    EXPECT_TRUE(call<s3::PutPublicAccessBlock>(in));
  }
  bool has_policy() { return store.snapshot()->find_bucket_policy("data") != nullptr; }
  bool has_settings() {
    return BucketSettings(control).find("data", Setting::public_access) != nullptr;
  }
  RemoteStore remote{*objects};
};

TEST(Buckets, KeepPolicyAndSettingsWhileTheStoreIsUnavailable) {
  BucketsWorld world;
  world.remote.failure = unavailable("the endpoint does not answer");
  EXPECT_FALSE(world.call<s3::CreateBucket>({.bucket = "data"}));
  EXPECT_TRUE(world.has_policy());
  EXPECT_TRUE(world.has_settings());
  world.remote.failure.reset();
  EXPECT_FALSE(world.call<s3::CreateBucket>({.bucket = "data"})) << "it exists";
  EXPECT_TRUE(world.has_policy());
  EXPECT_TRUE(world.has_settings());
}

TEST(Buckets, HaveNoPolicyOrSettingsWhenRecreated) {
  BucketsWorld world;
  ASSERT_TRUE(world.objects->delete_bucket("data"));  // not by this server
  EXPECT_TRUE(world.has_policy() && world.has_settings());
  ASSERT_TRUE(world.call<s3::CreateBucket>({.bucket = "data"}));
  EXPECT_FALSE(world.has_policy() || world.has_settings());
}

}  // namespace
}  // namespace trainyard::api::s3

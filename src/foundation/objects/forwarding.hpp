// ForwardingObjects forwards each call to another store. It is a base for stores that change a few
// calls, to count them or to make them fail.
//
// Threads and errors: those of the other store. Lifetime: the other store outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "objects/objects.hpp"

namespace trainyard::objects {

class ForwardingObjects : public Objects {
 public:
  explicit ForwardingObjects(Objects& store) : store_(store) {}

  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    return store_.create_bucket(bucket, region);
  }
  Result<void> delete_bucket(const std::string& bucket) override {
    return store_.delete_bucket(bucket);
  }
  Result<BucketInfo> head_bucket(const std::string& bucket) override {
    return store_.head_bucket(bucket);
  }
  Result<std::vector<BucketInfo>> list_buckets() override { return store_.list_buckets(); }
  Result<void> set_bucket_tags(const std::string& bucket,
                               const std::map<std::string, std::string>& tags) override {
    return store_.set_bucket_tags(bucket, tags);
  }
  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    return store_.get(bucket, key, range);
  }
  Result<ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    return store_.head(bucket, key);
  }
  Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                      const PutOptions& options) override {
    return store_.put(bucket, key, options);
  }
  Result<void> set_tags(const std::string& bucket, const std::string& key,
                        const std::map<std::string, std::string>& tags) override {
    return store_.set_tags(bucket, key, tags);
  }
  Result<void> remove(const std::string& bucket, const std::string& key) override {
    return store_.remove(bucket, key);
  }
  Result<ListPage> list(const std::string& bucket, const ListQuery& query) override {
    return store_.list(bucket, query);
  }
  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const PutOptions& options) override {
    return store_.start_upload(bucket, key, options);
  }
  Result<std::unique_ptr<Writer>> put_part(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id, uint32_t part,
                                           const PutOptions& options) override {
    return store_.put_part(bucket, key, upload_id, part, options);
  }
  Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<PartInfo>& parts,
                                     const CompleteOptions& options) override {
    return store_.complete_upload(bucket, key, upload_id, parts, options);
  }
  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    return store_.abort_upload(bucket, key, upload_id);
  }
  Result<std::vector<PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id) override {
    return store_.list_parts(bucket, key, upload_id);
  }
  Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket,
                                               const std::string& prefix) override {
    return store_.list_uploads(bucket, prefix);
  }

 private:
  Objects& store_;
};

}  // namespace trainyard::objects

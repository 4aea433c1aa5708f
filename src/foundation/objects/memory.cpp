#include "objects/memory.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "base/thread_safety.hpp"
#include "objects/checksum.hpp"
#include "objects/listing.hpp"
#include "objects/multipart.hpp"
#include "objects/names.hpp"

namespace trainyard::objects {
namespace {

// A Stored is an object or a part of an upload. The table and the readers share it, and the last of
// them frees it. It is immutable once stored.
struct Stored {
  ObjectInfo info;
  std::string bytes;
  std::string upload_id;        // the multipart upload that made it; "": a single put
  std::vector<PartInfo> parts;  // the parts of the multipart upload
};
using Blob = std::shared_ptr<const Stored>;

struct Upload {
  UploadInfo info;
  PutOptions options;
  std::map<uint32_t, Blob> parts;
};

struct Bucket {
  BucketInfo info;
  std::map<std::string, Blob> blobs;
  std::map<std::string, Upload> uploads;
};

PartInfo part_info(uint32_t number, const Stored& stored) {
  return {number, stored.info.etag, stored.info.bytes, stored.info.modified, stored.info.checksums};
}

class MemoryReader final : public Reader {
 public:
  MemoryReader(Blob blob, Range range) : blob_(std::move(blob)), range_(range), at_(range.first) {}
  const ObjectInfo& info() const override { return blob_->info; }
  Range range() const override { return range_; }
  std::vector<PartInfo> parts() const override { return blob_->parts; }
  Result<std::map<std::string, std::string>> part_checksums(uint32_t number) override {
    for (const auto& part : blob_->parts)
      if (part.number == number) return part.checksums;
    return std::map<std::string, std::string>();
  }
  Result<size_t> read(std::span<char> buffer) override {
    const size_t bytes = std::min<uint64_t>(buffer.size(), range_.last + 1 - at_);
    std::copy_n(blob_->bytes.data() + at_, bytes, buffer.data());
    at_ += bytes;
    return bytes;
  }

 private:
  const Blob blob_;
  const Range range_;
  uint64_t at_;
};

class MapCursor final : public Cursor {
 public:
  explicit MapCursor(const std::map<std::string, Blob>& blobs) : blobs_(blobs) {}
  Result<std::optional<std::string>> at_or_after(const std::string& bound,
                                                 const RollsUp&) override {
    const auto found = blobs_.lower_bound(bound);
    if (found == blobs_.end()) return std::optional<std::string>();
    return std::optional(found->first);
  }
  Result<std::optional<ObjectInfo>> describe(const std::string& key) override {
    return std::optional(listed(key, blobs_.at(key)->info));
  }

 private:
  const std::map<std::string, Blob>& blobs_;
};

class Memory final : public Objects {
 public:
  Memory(Clock& clock, Random& random) : clock_(clock), random_(random) {}

  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    TRY(check_bucket_name(bucket));
    MutexLock lock(mutex_);
    const bool made =
        buckets_.try_emplace(bucket, Bucket{{bucket, region, clock_.now()}, {}, {}}).second;
    if (!made) return bucket_exists(bucket);
    return ok();
  }

  Result<void> delete_bucket(const std::string& bucket) override {
    MutexLock lock(mutex_);
    if (!TRY(find(bucket))->blobs.empty()) return bucket_not_empty(bucket);
    buckets_.erase(bucket);
    return ok();
  }

  Result<BucketInfo> head_bucket(const std::string& bucket) override {
    MutexLock lock(mutex_);
    return TRY(find(bucket))->info;
  }

  Result<void> set_bucket_tags(const std::string& bucket,
                               const std::map<std::string, std::string>& tags) override {
    TRY(check_tags(tags, kBucketTagsMax));
    MutexLock lock(mutex_);
    TRY(find(bucket))->info.tags = tags;
    return ok();
  }

  Result<std::vector<BucketInfo>> list_buckets() override {
    MutexLock lock(mutex_);
    std::vector<BucketInfo> all;
    for (const auto& [name, bucket] : buckets_) all.push_back(bucket.info);
    return all;
  }

  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    MutexLock lock(mutex_);
    Blob blob = TRY(find(bucket, key));
    const Range resolved = TRY(resolve_range(range, blob->info.bytes, blob->parts));
    return std::unique_ptr<Reader>(new MemoryReader(std::move(blob), resolved));
  }

  Result<ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    MutexLock lock(mutex_);
    return TRY(find(bucket, key))->info;
  }

  Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                      const PutOptions& options) override {
    TRY(head_bucket(bucket));
    return make_writer(key, options, [this, bucket, key, options](Blob blob) -> Result<void> {
      MutexLock lock(mutex_);
      auto& blobs = TRY(find(bucket))->blobs;
      TRY(check_replaced(bucket, blobs, key, options.only_if_absent, options.only_if_etag));
      blobs[key] = std::move(blob);
      return ok();
    });
  }

  Result<void> set_tags(const std::string& bucket, const std::string& key,
                        const std::map<std::string, std::string>& tags) override {
    TRY(check_options(PutOptions{.tags = tags}));
    MutexLock lock(mutex_);
    auto tagged = std::make_shared<Stored>(*TRY(find(bucket, key)));
    tagged->info.tags = tags;
    TRY(find(bucket))->blobs[key] = std::move(tagged);
    return ok();
  }

  Result<void> remove(const std::string& bucket, const std::string& key) override {
    TRY(check_key(key));
    MutexLock lock(mutex_);
    TRY(find(bucket))->blobs.erase(key);
    return ok();
  }

  Result<void> remove_unchanged(const std::string& bucket, const std::string& key,
                                const ObjectInfo& seen) override {
    MutexLock lock(mutex_);
    auto& blobs = TRY(find(bucket))->blobs;
    const auto found = blobs.find(key);
    if (found == blobs.end()) return ok();
    TRY(check_unchanged(bucket, found->second->info, seen));
    blobs.erase(found);
    return ok();
  }

  Result<ListPage> list(const std::string& bucket, const ListQuery& query) override {
    MutexLock lock(mutex_);
    MapCursor cursor(TRY(find(bucket))->blobs);
    return list_page(cursor, query);
  }

  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const PutOptions& options) override {
    TRY(check_key(key));
    TRY(check_options(options));
    TRY(ContentCheck::make(options));
    MutexLock lock(mutex_);
    Bucket* const found = TRY(find(bucket));
    const std::string id = random_.hex(16);
    found->uploads[id] = Upload{{key, id, clock_.now()}, options, {}};
    return id;
  }

  Result<std::unique_ptr<Writer>> put_part(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id, uint32_t part,
                                           const PutOptions& options) override {
    TRY(check_part_number(part));
    PutOptions of_part = options;
    {
      MutexLock lock(mutex_);
      const Upload* const upload = TRY(find_upload(bucket, key, upload_id));
      for (const auto& [algorithm, value] : upload->options.checksums)
        of_part.checksums.try_emplace(algorithm, "");
    }
    return make_writer(key, of_part,
                       [this, bucket, key, upload_id, part](Blob blob) -> Result<void> {
                         MutexLock lock(mutex_);
                         TRY(find_upload(bucket, key, upload_id))->parts[part] = std::move(blob);
                         return ok();
                       });
  }

  Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<PartInfo>& parts,
                                     const CompleteOptions& declared) override {
    MutexLock lock(mutex_);
    Bucket* const found = TRY(find(bucket));
    const auto done = found->blobs.find(key);
    if (done != found->blobs.end() && !upload_id.empty() && done->second->upload_id == upload_id)
      return done->second->info;
    const Upload* const upload = TRY(find_upload(bucket, key, upload_id));
    std::map<uint32_t, PartInfo> stored;
    for (const auto& [number, blob] : upload->parts) stored[number] = part_info(number, *blob);
    Joined joined = TRY(join_parts(parts, stored, upload->options, declared));
    TRY(check_replaced(bucket, found->blobs, key,
                       upload->options.only_if_absent || declared.only_if_absent,
                       declared.only_if_etag));
    auto whole = std::make_shared<Stored>();
    for (const auto& part : parts) {
      whole->bytes += upload->parts.at(part.number)->bytes;
      whole->parts.push_back(stored.at(part.number));
    }
    whole->upload_id = upload_id;
    whole->info = {key,
                   joined.bytes,
                   joined.etag,
                   clock_.now(),
                   upload->options.content_type,
                   upload->options.headers,
                   upload->options.metadata,
                   joined.checksums,
                   {},
                   upload->options.tags};
    found->uploads.erase(upload_id);
    found->blobs[key] = whole;
    return whole->info;
  }

  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    MutexLock lock(mutex_);
    TRY(find_upload(bucket, key, upload_id));
    buckets_.at(bucket).uploads.erase(upload_id);
    return ok();
  }

  Result<std::vector<PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id) override {
    MutexLock lock(mutex_);
    std::vector<PartInfo> parts;
    const Upload* const upload = TRY(find_upload(bucket, key, upload_id));
    for (const auto& [number, blob] : upload->parts) parts.push_back(part_info(number, *blob));
    return parts;
  }

  Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket,
                                               const std::string& prefix) override {
    MutexLock lock(mutex_);
    std::vector<UploadInfo> uploads;
    const Bucket* const found = TRY(find(bucket));
    for (const auto& [id, upload] : found->uploads)
      if (upload.info.key.starts_with(prefix)) uploads.push_back(upload.info);
    std::sort(uploads.begin(), uploads.end(), [](const UploadInfo& a, const UploadInfo& b) {
      return std::tie(a.key, a.upload_id) < std::tie(b.key, b.upload_id);
    });
    return uploads;
  }

 private:
  using Store = std::function<Result<void>(Blob)>;

  class MemoryWriter final : public Writer {
   public:
    MemoryWriter(Clock& clock, std::string key, PutOptions options, ContentCheck check, Store store)
        : clock_(clock),
          key_(std::move(key)),
          options_(std::move(options)),
          content_check_(std::move(check)),
          store_(std::move(store)) {}
    Result<void> write(std::span<const char> bytes) override {
      content_check_.add(bytes);
      bytes_.append(bytes.data(), bytes.size());
      return ok();
    }
    void expect_checksum(std::string algorithm, std::string base64) override {
      content_check_.expect(std::move(algorithm), std::move(base64));
    }
    Result<ObjectInfo> commit() override {
      auto kept = TRY(content_check_.finish());
      auto stored = std::make_shared<Stored>();
      stored->info = {key_,
                      kept.bytes,
                      kept.etag,
                      clock_.now(),
                      options_.content_type,
                      options_.headers,
                      options_.metadata,
                      kept.checksums,
                      {},
                      options_.tags};
      stored->bytes = std::move(bytes_);
      TRY(store_(stored));
      return stored->info;
    }

   private:
    Clock& clock_;
    const std::string key_;
    const PutOptions options_;
    ContentCheck content_check_;
    const Store store_;
    std::string bytes_;
  };

  Result<std::unique_ptr<Writer>> make_writer(const std::string& key, const PutOptions& options,
                                              Store store) {
    TRY(check_key(key));
    TRY(check_options(options));
    ContentCheck check = TRY(ContentCheck::make(options));
    return std::unique_ptr<Writer>(
        new MemoryWriter(clock_, key, options, std::move(check), std::move(store)));
  }

  // Checks the conditions (If-Match, If-None-Match) of a write.
  static Result<void> check_replaced(const std::string& bucket,
                                     const std::map<std::string, Blob>& blobs,
                                     const std::string& key, bool only_if_absent,
                                     const std::string& only_if_etag) {
    const auto found = blobs.find(key);
    if (only_if_absent && found != blobs.end()) return key_exists(bucket, key);
    if (only_if_etag.empty()) return ok();
    if (found == blobs.end()) return no_key(bucket, key);
    return check_etag(bucket, found->second->info, only_if_etag);
  }

  Result<Bucket*> find(const std::string& bucket) REQUIRES(mutex_) {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    return &found->second;
  }
  Result<Blob> find(const std::string& bucket, const std::string& key) REQUIRES(mutex_) {
    const auto& blobs = TRY(find(bucket))->blobs;
    TRY(check_key(key));
    const auto found = blobs.find(key);
    if (found == blobs.end()) return no_key(bucket, key);
    return found->second;
  }
  Result<Upload*> find_upload(const std::string& bucket, const std::string& key,
                              const std::string& id) REQUIRES(mutex_) {
    auto& uploads = TRY(find(bucket))->uploads;
    const auto found = uploads.find(id);
    if (found == uploads.end() || found->second.info.key != key) return no_upload(id);
    return &found->second;
  }

  Clock& clock_;
  Random& random_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Objects> make_memory(Clock& clock, Random& random) {
  return std::make_unique<Memory>(clock, random);
}

}  // namespace trainyard::objects

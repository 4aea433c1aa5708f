#include "agent/report/progress.hpp"

#include "base/thread_safety.hpp"

namespace trainyard::agent {

ProgressMeter::ProgressMeter(std::string what, std::function<void(const wire::Message&)> say,
                             Clock& clock)
    : what_(std::move(what)), say_(std::move(say)), clock_(clock) {
  tell(false);
}

void ProgressMeter::moved(uint64_t bytes) {
  done_ += bytes;
  {
    const MutexLock lock(mutex_);
    if (clock_.monotonic() - reported_at_ < kProgressInterval) return;
  }
  tell(false);
}

void ProgressMeter::finish() { tell(true); }

void ProgressMeter::tell(bool finished) {
  {
    const MutexLock lock(mutex_);
    reported_at_ = clock_.monotonic();
  }
  if (say_) say_(wire::Progress{what_, done_, total_, finished});
}

namespace {

class CountedReader final : public objects::Reader {
 public:
  CountedReader(std::unique_ptr<objects::Reader> reader, ProgressMeter& meter)
      : reader_(std::move(reader)), meter_(meter) {}
  const objects::ObjectInfo& info() const override { return reader_->info(); }
  objects::Range range() const override { return reader_->range(); }
  Result<size_t> read(std::span<char> buffer) override {
    auto got = reader_->read(buffer);
    if (got && *got > 0) meter_.moved(*got);
    return got;
  }

 private:
  std::unique_ptr<objects::Reader> reader_;
  ProgressMeter& meter_;
};

using objects::CompleteOptions;
using objects::ListPage;
using objects::ListQuery;
using objects::ObjectInfo;
using objects::PartInfo;
using objects::PutOptions;
using Text = const std::string&;

class CountedObjects final : public objects::Objects {
 public:
  CountedObjects(objects::Objects& store, ProgressMeter& meter, bool counts_listed)
      : store_(store), meter_(meter), counts_listed_(counts_listed) {}

  Result<std::unique_ptr<objects::Reader>> get(Text bucket, Text key,
                                               std::optional<objects::Range> range) override {
    auto reader = TRY(store_.get(bucket, key, range));
    return std::unique_ptr<objects::Reader>(
        std::make_unique<CountedReader>(std::move(reader), meter_));
  }
  Result<ListPage> list(Text bucket, const ListQuery& query) override {
    auto page = store_.list(bucket, query);
    if (page && counts_listed_)
      for (const auto& object : page->objects) meter_.expect(object.bytes);
    return page;
  }

  // Other calls are passed through.
  Result<void> create_bucket(Text bucket, Text region) override {
    return store_.create_bucket(bucket, region);
  }
  Result<void> delete_bucket(Text bucket) override { return store_.delete_bucket(bucket); }
  Result<objects::BucketInfo> head_bucket(Text bucket) override {
    return store_.head_bucket(bucket);
  }
  Result<std::vector<objects::BucketInfo>> list_buckets() override { return store_.list_buckets(); }
  Result<ObjectInfo> head(Text bucket, Text key) override { return store_.head(bucket, key); }
  Result<std::unique_ptr<objects::Writer>> put(Text bucket, Text key,
                                               const PutOptions& options) override {
    return store_.put(bucket, key, options);
  }
  Result<void> set_bucket_tags(Text bucket,
                               const std::map<std::string, std::string>& tags) override {
    return store_.set_bucket_tags(bucket, tags);
  }
  Result<void> set_tags(Text bucket, Text key,
                        const std::map<std::string, std::string>& tags) override {
    return store_.set_tags(bucket, key, tags);
  }
  Result<void> remove(Text bucket, Text key) override { return store_.remove(bucket, key); }
  Result<std::string> start_upload(Text bucket, Text key, const PutOptions& options) override {
    return store_.start_upload(bucket, key, options);
  }
  Result<std::unique_ptr<objects::Writer>> put_part(Text bucket, Text key, Text upload,
                                                    uint32_t part,
                                                    const PutOptions& options) override {
    return store_.put_part(bucket, key, upload, part, options);
  }
  Result<ObjectInfo> complete_upload(Text bucket, Text key, Text upload,
                                     const std::vector<PartInfo>& parts,
                                     const CompleteOptions& options) override {
    return store_.complete_upload(bucket, key, upload, parts, options);
  }
  Result<void> abort_upload(Text bucket, Text key, Text upload) override {
    return store_.abort_upload(bucket, key, upload);
  }
  Result<std::vector<PartInfo>> list_parts(Text bucket, Text key, Text upload) override {
    return store_.list_parts(bucket, key, upload);
  }
  Result<std::vector<objects::UploadInfo>> list_uploads(Text bucket, Text prefix) override {
    return store_.list_uploads(bucket, prefix);
  }

 private:
  objects::Objects& store_;
  ProgressMeter& meter_;
  const bool counts_listed_;
};

}  // namespace

std::unique_ptr<objects::Objects> counted(objects::Objects& store, ProgressMeter& meter,
                                          bool counts_listed) {
  return std::make_unique<CountedObjects>(store, meter, counts_listed);
}

}  // namespace trainyard::agent

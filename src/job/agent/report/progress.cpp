#include "agent/report/progress.hpp"

#include "base/thread_safety.hpp"
#include "objects/forwarding.hpp"

namespace trainyard::agent {

ProgressMeter::ProgressMeter(std::string what, std::function<void(const wire::Message&)> say,
                             Clock& clock)
    : what_(std::move(what)), say_(std::move(say)), clock_(clock) {
  report(false);
}

void ProgressMeter::moved(uint64_t bytes) {
  done_ += bytes;
  {
    const MutexLock lock(mutex_);
    if (clock_.monotonic() - reported_at_ < kProgressInterval) return;
  }
  report(false);
}

void ProgressMeter::finish() { report(true); }

void ProgressMeter::report(bool finished) {
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

class CountedObjects final : public objects::ForwardingObjects {
 public:
  CountedObjects(objects::Objects& store, ProgressMeter& meter, bool counts_listed)
      : ForwardingObjects(store), meter_(meter), counts_listed_(counts_listed) {}

  Result<std::unique_ptr<objects::Reader>> get(const std::string& bucket, const std::string& key,
                                               std::optional<objects::Range> range) override {
    auto reader = TRY(ForwardingObjects::get(bucket, key, range));
    return std::unique_ptr<objects::Reader>(
        std::make_unique<CountedReader>(std::move(reader), meter_));
  }
  Result<objects::ListPage> list(const std::string& bucket,
                                 const objects::ListQuery& query) override {
    auto page = ForwardingObjects::list(bucket, query);
    if (page && counts_listed_)
      for (const auto& object : page->objects) meter_.expect(object.bytes);
    return page;
  }

 private:
  ProgressMeter& meter_;
  const bool counts_listed_;
};

}  // namespace

std::unique_ptr<objects::Objects> counted(objects::Objects& store, ProgressMeter& meter,
                                          bool counts_listed) {
  return std::make_unique<CountedObjects>(store, meter, counts_listed);
}

}  // namespace trainyard::agent

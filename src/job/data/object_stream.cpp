#include "data/object_stream.hpp"

namespace trainyard::data {

Result<std::unique_ptr<ObjectStream>> ObjectStream::open(objects::Objects& objects,
                                                         const objects::Location& from,
                                                         Clock& clock, Stop& stop) {
  std::unique_ptr<ObjectStream> stream(new ObjectStream(objects, from, clock, stop));
  for (;;) {
    const auto opened = stream->open_at(0);
    if (opened) return stream;
    if (!stream->pause_before_retry(opened.error())) return opened.error();
  }
}

Result<size_t> ObjectStream::read(std::span<char> buffer) {
  for (;;) {
    if (stop_.ordered()) return cancelled("stopped");
    if (at_ == bytes_) return size_t{0};
    Result<void> opened;
    if (!reader_) opened = open_at(at_);
    if (opened) {
      const auto got = reader_->read(buffer);
      if (got && *got == 0)
        return corrupt("it ended after " + std::to_string(at_) + " of " + std::to_string(bytes_) +
                       " bytes");
      if (got) {
        outage_began_.reset();
        at_ += *got;
        return *got;
      }
      reader_.reset();
      opened = got.error();
    }
    if (!pause_before_retry(opened.error())) return opened.error();
  }
}

Result<void> ObjectStream::open_at(uint64_t offset) {
  std::optional<objects::Range> range;
  if (offset > 0) range = objects::Range{offset, UINT64_MAX, {}};
  auto reader = TRY(objects_.get(from_.bucket, from_.key, range));
  if (offset == 0 && at_ == 0) {
    bytes_ = reader->info().bytes;
    etag_ = reader->info().etag;
  } else if (reader->info().etag != etag_) {
    return conflict("it was replaced while it was read");
  }
  reader_ = std::move(reader);
  return {};
}

bool ObjectStream::pause_before_retry(const Error& error) {
  const bool of_keys = error.kind == Kind::denied;
  if (error.kind != Kind::unavailable && !of_keys) return false;
  const auto now = clock_.monotonic();
  if (!outage_began_) outage_began_ = now;
  if (now - *outage_began_ > (of_keys ? kRenewedKeysMax : kOutageMax)) return false;
  return !stop_.wait(kOutagePause);
}

}  // namespace trainyard::data

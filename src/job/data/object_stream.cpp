#include "data/object_stream.hpp"

namespace trainyard::data {

Result<std::unique_ptr<ObjectStream>> ObjectStream::open(objects::Objects& objects,
                                                         const objects::Location& from,
                                                         Clock& clock, Stop& stop) {
  std::unique_ptr<ObjectStream> stream(new ObjectStream(clock, stop));
  for (;;) {
    auto opened = objects.get(from.bucket, from.key);
    if (opened) {
      stream->reader_ = *std::move(opened);
      return stream;
    }
    if (!stream->pause_before_retry(opened.error())) return opened.error();
  }
}

Result<size_t> ObjectStream::read(std::span<char> buffer) {
  for (;;) {
    if (stop_.ordered()) return cancelled("stopped");
    if (at_ == bytes()) return size_t{0};
    const auto got = reader_->read(buffer);
    if (got && *got == 0)
      return corrupt("it ended after " + std::to_string(at_) + " of " + std::to_string(bytes()) +
                     " bytes");
    if (got) {
      outage_began_.reset();
      at_ += *got;
      return *got;
    }
    if (got.error().is(objects::Fault::etag_differs))
      return conflict("it was replaced while it was read");
    if (!pause_before_retry(got.error())) return got.error();
  }
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

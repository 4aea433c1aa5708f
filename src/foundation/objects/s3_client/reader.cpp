#include "objects/s3_client/reader.hpp"

#include <algorithm>

namespace trainyard::objects {
namespace {

class S3Reader final : public Reader {
 public:
  S3Reader(Client& client, S3Request what, Client::Opened opened, ObjectInfo info, Range range)
      : client_(client),
        what_(std::move(what)),
        connection_(std::move(opened.connection)),
        info_(std::move(info)),
        range_(range),
        at_(range.first) {}
  const ObjectInfo& info() const override { return info_; }
  Range range() const override { return range_; }

  Result<size_t> read(std::span<char> buffer) override {
    const uint64_t left = range_.last + 1 - at_;
    if (left == 0 || buffer.empty()) return size_t(0);
    for (int attempt = 1;; ++attempt) {
      if (!connection_) TRY(resume());
      auto bytes = connection_->read(buffer.first(std::min<uint64_t>(buffer.size(), left)));
      if (bytes && *bytes == 0)
        bytes = unavailable("the connection was closed before the end of the object");
      if (bytes) {
        at_ += *bytes;
        if (at_ == range_.last + 1) connection_.reset();  // other requests can use it
        return bytes;
      }
      connection_.reset();
      if (bytes.error().kind != Kind::unavailable || attempt >= client_.settings().attempts_max)
        return Error(bytes.error())
            .in("reading " + what_.text() + " at byte " + std::to_string(at_));
    }
  }

 private:
  Result<void> resume() {
    S3Request rest = what_;
    rest.headers = {{"Range", "bytes=" + std::to_string(at_) + "-" + std::to_string(range_.last)},
                    {"If-Match", "\"" + info_.etag + "\""}};
    auto opened = client_.open(rest);
    if (!opened && opened.error().kind == Kind::conflict)
      return unavailable(what_.text() + " was replaced while it was read", Fault::etag_differs);
    auto again = TRY(std::move(opened));
    if (again.head.status != 206)
      return unavailable(what_.text() + ": the endpoint does not support byte ranges");
    connection_ = std::move(again.connection);
    return ok();
  }

  Client& client_;
  const S3Request what_;
  Client::Loan connection_;  // nullptr: the connection broke
  const ObjectInfo info_;
  const Range range_;
  uint64_t at_;
};

}  // namespace

std::unique_ptr<Reader> read_s3(Client& client, S3Request what, Client::Opened opened,
                                ObjectInfo info, Range range) {
  return std::make_unique<S3Reader>(client, std::move(what), std::move(opened), std::move(info),
                                    range);
}

}  // namespace trainyard::objects

// Decompresses gzip, of one member or several, from a stream.
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "data/object_stream.hpp"

namespace trainyard::data {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;

class Gunzip final : public ByteStream {
 public:
  explicit Gunzip(std::unique_ptr<ByteStream> from)
      : from_(std::move(from)), buffer_(kBufferBytes) {}
  ~Gunzip() override { inflateEnd(&state_); }

  Result<void> begin() {
    if (inflateInit2(&state_, kGzipOnly) != Z_OK) return internal("starting zlib failed");
    return {};
  }

  Result<size_t> read(std::span<char> into) override {
    state_.next_out = reinterpret_cast<Bytef*>(into.data());
    state_.avail_out = static_cast<uInt>(std::min<size_t>(into.size(), 1 << 30));
    const size_t wanted = state_.avail_out;
    while (state_.avail_out == wanted) {
      if (state_.avail_in == 0 && !at_end_) {
        const size_t got = TRY(from_->read(buffer_));
        state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        state_.avail_in = static_cast<uInt>(got);
        at_end_ = got == 0;
      }
      if (state_.avail_in == 0 && at_end_) {
        if (within_member_) return invalid("truncated gzip data: its last block is incomplete");
        return size_t{0};
      }
      if (!within_member_) {
        if (began_ && inflateReset(&state_) != Z_OK) return internal("restarting zlib failed");
        within_member_ = began_ = true;
      }
      const int done = inflate(&state_, Z_NO_FLUSH);
      if (done == Z_STREAM_END) {
        within_member_ = false;
      } else if (done != Z_OK && done != Z_BUF_ERROR) {
        return invalid(std::string("invalid gzip data: ") + (state_.msg ? state_.msg : "damaged"));
      }
    }
    return wanted - state_.avail_out;
  }

 private:
  const std::unique_ptr<ByteStream> from_;
  std::vector<char> buffer_;
  z_stream state_{};
  bool began_ = false, within_member_ = false, at_end_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> decompressed(std::unique_ptr<ByteStream> compressed) {
  auto stream = std::make_unique<Gunzip>(std::move(compressed));
  TRY(stream->begin());
  return std::unique_ptr<ByteStream>(std::move(stream));
}

}  // namespace trainyard::data

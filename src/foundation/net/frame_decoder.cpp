#include "net/frame_decoder.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace trainyard::net {
namespace {

// limit of memory that is reserved for a declared length; the rest is allocated as bytes arrive
constexpr size_t kTrustedBytesMax = 64 << 10;

}  // namespace

Result<void> FrameDecoder::take(std::string_view bytes, std::vector<std::string>& frames) {
  while (!bytes.empty()) {
    if (length_known_ < kLengthBytes) {
      length_ |= uint32_t(uint8_t(bytes.front())) << (8 * length_known_++);
      bytes.remove_prefix(1);
      if (length_known_ < kLengthBytes) continue;
      if (length_ > frame_bytes_max_)
        return corrupt("receiving a frame of " + human_bytes(length_) + ": the limit is " +
                       human_bytes(frame_bytes_max_));
      arriving_.reserve(std::min<size_t>(length_, kTrustedBytesMax));
    }
    const size_t part = std::min<size_t>(bytes.size(), length_ - arriving_.size());
    arriving_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (arriving_.size() < length_) return ok();
    frames.push_back(std::exchange(arriving_, {}));
    length_ = 0;
    length_known_ = 0;
  }
  return ok();
}

}  // namespace trainyard::net

// FrameDecoder splits a stream of bytes into frames: u32 little-endian length, and that number of
// bytes. Private to this module.
//
// Threads: confined to one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::net {

class FrameDecoder {
 public:
  static constexpr size_t kLengthBytes = 4;

  explicit FrameDecoder(size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  // Appends the frames that these bytes complete. Errors: corrupt, if a length exceeds the limit;
  // no more bytes can be decoded after that.
  Result<void> take(std::string_view bytes, std::vector<std::string>& frames);

  // Returns true if the last frame is incomplete.
  bool within_frame() const { return length_known_ > 0; }

 private:
  const size_t frame_bytes_max_;
  uint32_t length_ = 0;
  size_t length_known_ = 0;  // number of bytes of the length that have arrived
  std::string arriving_;
};

}  // namespace trainyard::net

// Splits a stream of bytes into frames: u32 little-endian length, then that many bytes. Private to
// this module.
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

  // Appends the frames that these bytes complete. Errors: corrupt, when a length exceeds the limit;
  // no later byte can be decoded then.
  Result<void> take(std::string_view bytes, std::vector<std::string>& frames);

  // True if a frame has begun and is incomplete.
  bool within_frame() const { return length_known_ > 0; }

 private:
  const size_t frame_bytes_max_;
  uint32_t length_ = 0;
  size_t length_known_ = 0;  // bytes of the length that have arrived
  std::string arriving_;
};

}  // namespace trainyard::net

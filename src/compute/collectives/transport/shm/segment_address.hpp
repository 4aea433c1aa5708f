// A SegmentAddress is what other ranks need to open the segment of a rank, and to verify that they
// opened the right one.
//
// Threads: pure functions. Errors: corrupt, when a text cannot be an address.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::collectives {

struct SegmentAddress {
  int64_t process = 0;
  int descriptor = -1;
  std::array<uint64_t, 2> nonce{};
};
std::string encode(const SegmentAddress& address);
Result<SegmentAddress> decode_address(std::string_view text);

}  // namespace trainyard::collectives

#include "collectives/transport/shm/segment_address.hpp"

#include <charconv>
#include <cstdio>

namespace trainyard::collectives {

std::string encode(const SegmentAddress& address) {
  char text[128];
  std::snprintf(text, sizeof text, "%lld %d %llx %llx", (long long)address.process,
                address.descriptor, (unsigned long long)address.nonce[0],
                (unsigned long long)address.nonce[1]);
  return text;
}

Result<SegmentAddress> decode_address(std::string_view text) {
  SegmentAddress address;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, address.process);
  const auto next = [&](auto& number, int base) {
    if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ' ') {
      read.ec = std::errc::invalid_argument;
      return;
    }
    read = std::from_chars(read.ptr + 1, end, number, base);
  };
  next(address.descriptor, 10);
  next(address.nonce[0], 16);
  next(address.nonce[1], 16);
  if (read.ec != std::errc{} || read.ptr != end || address.process <= 0 || address.descriptor < 0)
    return corrupt("invalid address of shared memory");
  return address;
}

}  // namespace trainyard::collectives

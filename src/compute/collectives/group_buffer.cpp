#include "collectives/group_buffer.hpp"

#include <algorithm>
#include <bit>

namespace trainyard::collectives {
namespace {

// The initial size. The size doubles, so the buffer does not grow with every new set of tensors.
constexpr size_t kBytesMin = size_t{64} << 10;

}  // namespace

void GroupBuffer::release() {
  if (!registered_.empty()) group_.free(registered_);
  registered_ = {};
  ordinary_.reset();
}

std::byte* GroupBuffer::bytes(size_t size) {
  if (size > size_ || size_ == 0) {
    release();
    size_ = std::max(kBytesMin, std::bit_ceil(size));
    if (auto memory = group_.allocate(size_)) {
      registered_ = *memory;
    } else {
      ordinary_ = std::make_unique_for_overwrite<std::byte[]>(size_);
    }
  }
  return registered_.empty() ? ordinary_.get() : registered_.data();
}

}  // namespace trainyard::collectives

#include "host/bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace trainyard::host {

Bell::Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Bell::~Bell() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Bell::ring() {
  const uint64_t one = 1;
  (void)!::write(descriptor_, &one, sizeof one);
}

void Bell::clear() {
  uint64_t count;
  (void)!::read(descriptor_, &count, sizeof count);
}

}  // namespace trainyard::host

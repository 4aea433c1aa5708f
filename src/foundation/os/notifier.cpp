#include "os/notifier.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace trainyard::os {

Notifier::Notifier() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Notifier::~Notifier() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Notifier::notify() {
  const uint64_t one = 1;
  (void)!::write(descriptor_, &one, sizeof one);
}

void Notifier::clear() {
  uint64_t count;
  (void)!::read(descriptor_, &count, sizeof count);
}

}  // namespace trainyard::os

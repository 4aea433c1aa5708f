#include "os/notifier.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace trainyard::os {

Notifier::Notifier() : file_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Notifier::notify() {
  const uint64_t one = 1;
  (void)!::write(descriptor(), &one, sizeof one);
}

void Notifier::clear() {
  uint64_t count;
  (void)!::read(descriptor(), &count, sizeof count);
}

}  // namespace trainyard::os

#include "os/shared_lock.hpp"

#include <fcntl.h>

#include <cerrno>

namespace trainyard::os {

Result<SharedLock> SharedLock::take(const std::string& path) {
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return from_errno("locking " + path);
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file.descriptor(), F_OFD_SETLK, &lock) == 0) return SharedLock(std::move(file));
  if (errno == EAGAIN || errno == EACCES)
    return conflict(path + " is locked by a process that uses it alone");
  return from_errno("locking " + path);
}

}  // namespace trainyard::os

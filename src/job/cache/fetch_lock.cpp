#include "cache/fetch_lock.hpp"

#include <fcntl.h>

#include <cerrno>

namespace trainyard::cache {
namespace {

struct flock one_byte(uint64_t offset, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  return lock;
}

// 62 bits: an offset and the byte behind it are valid file offsets.
uint64_t offset_of(const Digest& hash) {
  uint64_t offset = 0;
  for (size_t i = 0; i < 8; ++i) offset = offset << 8 | hash[i];
  return offset >> 2;
}

}  // namespace

Result<FetchLock> FetchLock::open(const std::string& path, const Digest& hash) {
  os::File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return from_errno("locking " + path);
  return FetchLock(std::move(file), offset_of(hash));
}

Result<bool> FetchLock::try_take() {
  auto lock = one_byte(offset_, F_WRLCK);
  if (::fcntl(file_.descriptor(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return from_errno("locking a block of the cache");
}

FetchLock::~FetchLock() {
  if (!file_) return;
  // Unlocks explicitly: a child process that is being started may have a copy of the descriptor.
  auto lock = one_byte(offset_, F_UNLCK);
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
}

}  // namespace trainyard::cache

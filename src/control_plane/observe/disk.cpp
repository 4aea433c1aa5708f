#include "observe/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace trainyard::observe {

Result<Descriptor> Descriptor::open(const std::string& path, int flags, unsigned mode) {
  int number;
  do number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (number < 0 && errno == EINTR);
  if (number < 0) return from_errno("opening " + path);
  return Descriptor(path, os::File(number));
}

Result<std::string> Descriptor::read(uint64_t offset, uint64_t length) const {
  std::string bytes(length, '\0');
  size_t done = 0;
  while (done < length) {
    const ssize_t count =
        ::pread(file_.descriptor(), bytes.data() + done, length - done, off_t(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return from_errno("reading " + path_);
    if (count == 0) break;
    done += size_t(count);
  }
  bytes.resize(done);
  return bytes;
}

Result<void> Descriptor::write(uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_.descriptor(), bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return from_errno("writing " + path_);
    bytes.remove_prefix(size_t(count));
    offset += uint64_t(count);
  }
  return ok();
}

Result<void> Descriptor::truncate(uint64_t length) const {
  if (::ftruncate(file_.descriptor(), off_t(length)) != 0) return from_errno("truncating " + path_);
  return ok();
}

Result<void> Descriptor::sync() const {
  if (::fdatasync(file_.descriptor()) != 0) return from_errno("syncing " + path_);
  return ok();
}

Result<uint64_t> Descriptor::length() const {
  struct stat status;
  if (::fstat(file_.descriptor(), &status) != 0) return from_errno("reading the size of " + path_);
  return uint64_t(status.st_size);
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return from_errno("renaming " + from);
  return ok();
}

Result<void> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return from_errno("removing " + path);
  return ok();
}

}  // namespace trainyard::observe

#include "os/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/thread_safety.hpp"

namespace trainyard::os {
Result<void> write_whole(const File& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.descriptor(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return from_errno("writing " + path);
    bytes.remove_prefix(size_t(written));
  }
  return ok();
}

Result<File> Disk::create(const std::string& path, int flags, unsigned mode) const {
  if (const int failed = fault(FileStep::create, path)) return from_errno("making " + path, failed);
  File file(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!file) return from_errno("making " + path);
  return file;
}

Result<void> Disk::write(const File& file, std::string_view bytes, const std::string& path) const {
  const FileFault failed = injected_fault(FileStep::write, path, bytes.size());
  if (failed.error_number == 0) return write_whole(file, bytes, path);
  TRY(write_whole(file, bytes.substr(0, failed.bytes_written), path));
  return from_errno("writing " + path, failed.error_number);
}

Result<void> Disk::sync(const File& file, const std::string& path) const {
  if (const int failed = fault(FileStep::sync, path))
    return note(from_errno("syncing " + path, failed), path);
  if (::fsync(file.descriptor()) != 0) return note(from_errno("syncing " + path), path);
  return ok();
}

Result<void> Disk::note(Result<void> synced, const std::string& path) const {
  if (!synced && synced.error().kind != Kind::exhausted && synced.error().kind != Kind::not_found) {
    const MutexLock lock(mutex_);
    if (failed_sync_.empty()) failed_sync_ = path;
  }
  return synced;
}

std::string Disk::failed_sync() const {
  const MutexLock lock(mutex_);
  return failed_sync_;
}

Result<void> Disk::truncate(const File& file, uint64_t bytes, const std::string& path) const {
  if (const int failed = fault(FileStep::truncate, path))
    return from_errno("cutting " + path, failed);
  if (::ftruncate(file.descriptor(), off_t(bytes)) != 0) return from_errno("cutting " + path);
  return ok();
}

Result<void> Disk::rename(const std::string& from, const std::string& to) const {
  if (const int failed = fault(FileStep::rename, to))
    return from_errno("renaming to " + to, failed);
  if (::rename(from.c_str(), to.c_str()) != 0) return from_errno("renaming to " + to);
  return ok();
}

Result<void> Disk::remove(const std::string& path) const {
  if (const int failed = fault(FileStep::remove, path))
    return from_errno("removing " + path, failed);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return from_errno("removing " + path);
  return ok();
}

Result<void> Disk::make_directories(const std::string& path, unsigned mode) const {
  if (const int failed = fault(FileStep::make_directory, path))
    return from_errno("making directory " + path, failed);
  return os::make_directories(path, mode);
}

Result<void> Disk::sync_directory(const std::string& path) const {
  if (const int failed = fault(FileStep::sync, path))
    return note(from_errno("syncing " + path, failed), path);
  return note(os::sync_directory(path), path);
}

Result<void> Disk::write_file_durably(const std::string& path, std::string_view bytes,
                                      unsigned mode) const {
  if (!faults_) return os::write_file_durably(path, bytes, mode);
  const size_t slash = path.rfind('/');
  const std::string parent = slash == path.npos ? "." : path.substr(0, slash);
  const std::string neighbour =
      parent + "/" + std::string(kNeighbourPrefix) + path.substr(slash + 1);
  auto written = [&]() -> Result<void> {
    const File file = TRY(create(neighbour, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
    TRY(write(file, bytes, neighbour));
    TRY(sync(file, neighbour));
    return rename(neighbour, path);
  }();
  if (!written) {
    ::unlink(neighbour.c_str());
    return std::move(written).error();
  }
  return sync_directory(parent);
}

Result<uint64_t> free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return from_errno("reading the free space of " + path);
  return uint64_t(status.f_bavail) * status.f_frsize;
}

}  // namespace trainyard::os

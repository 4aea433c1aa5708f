#include "os/beneath.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::os {
namespace {

// MOUNT_ATTR_NOSYMFOLLOW, which headers before Linux 5.14 lack
constexpr uint64_t kNoSymbolicLinks = 0x00200000;

// limit of retries, in case a job makes and removes a file repeatedly
constexpr int kCreateTriesMax = 100;

constexpr uint64_t kNoLinks = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

Result<File> open_beneath(const File& directory, const std::string& path, uint64_t flags,
                          unsigned mode = 0, uint64_t resolve = kNoLinks | RESOLVE_NO_XDEV) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = resolve;
  long descriptor;
  do
    descriptor = ::syscall(SYS_openat2, directory.descriptor(), path.empty() ? "." : path.c_str(),
                           &how, sizeof how);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor >= 0) return File(int(descriptor));
  if (errno == ELOOP) return invalid(path + ": leads through a link");
  if (errno == EXDEV) return invalid(path + ": leads out of its directory or onto another mount");
  return from_errno(path);
}

// Opens `path` with `flags`, after checking that it has the type `type`.
Result<File> open_of_type(const File& directory, const std::string& path, mode_t type, int flags) {
  const File found = TRY(open_beneath(directory, path, O_PATH));
  struct stat status = {};
  if (::fstat(found.descriptor(), &status) != 0) return from_errno(path);
  if ((status.st_mode & S_IFMT) != type)
    return invalid(path + (type == S_IFREG ? ": not a regular file" : ": not a FIFO"));
  // This link in /proc leads to the inspected file, even if its name has been changed meanwhile.
  const std::string itself = "/proc/self/fd/" + std::to_string(found.descriptor());
  int descriptor;
  do descriptor = ::open(itself.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return from_errno(path);
  return File(descriptor);
}

// Clones the mount of the directory, with the directory as its root. Returns an empty File if the
// kernel or the privileges of this process do not permit that.
File clone_mount(const File& directory) {
  File mount(int(::syscall(SYS_open_tree, directory.descriptor(), "",
                           AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!mount) return mount;
  mount_attr wanted = {};
  wanted.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | kNoSymbolicLinks;
  if (::syscall(SYS_mount_setattr, mount.descriptor(), "", AT_EMPTY_PATH, &wanted, sizeof wanted) !=
      0)
    mount.close();
  return mount;
}

Result<File> confined(File directory) {
  const File mount = clone_mount(directory);
  if (!mount) return directory;
  // The mount exists while a file in it is open, although it is in no namespace after `mount` is
  // closed.
  return open_beneath(mount, "", O_RDONLY | O_DIRECTORY);
}

}  // namespace

Result<File> open_confined_directory(const std::string& path) {
  File plain(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!plain) return from_errno("opening " + path);
  return confined(std::move(plain));
}

Result<File> open_confined_directory_beneath(const std::string& directory,
                                             const std::string& path) {
  const File above(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above) return from_errno("opening " + directory);
  return confined(TRY(open_beneath(above, path, O_RDONLY | O_DIRECTORY, 0, kNoLinks)));
}

Result<File> open_directory_beneath(const File& directory, const std::string& path) {
  return open_beneath(directory, path, O_RDONLY | O_DIRECTORY);
}

Result<File> open_file_beneath(const File& directory, const std::string& path) {
  return open_of_type(directory, path, S_IFREG, O_RDONLY);
}

Result<File> create_file_beneath(const File& directory, const std::string& path, IfThere if_there,
                                 unsigned mode) {
  for (int attempt = 0; attempt < kCreateTriesMax; attempt++) {
    auto made = open_beneath(directory, path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (made || made.error().kind != Kind::conflict) return made;
    auto file = open_of_type(directory, path, S_IFREG, O_WRONLY);
    if (!file && file.error().kind == Kind::not_found) continue;
    if (!file) return file;
    if (if_there == IfThere::truncate && ::ftruncate(file->descriptor(), 0) != 0)
      return from_errno(path);
    return file;
  }
  return unavailable(path + ": gave up, because it is made and removed repeatedly");
}

Result<File> open_fifo_beneath(const File& directory, const std::string& path, FifoEnd end) {
  return open_of_type(directory, path, S_IFIFO, end == FifoEnd::reading ? O_RDONLY : O_WRONLY);
}

Result<File> make_directories_beneath(const File& directory, const std::string& path,
                                      unsigned mode) {
  File above = TRY(open_directory_beneath(directory, ""));
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    const std::string name(part);
    if (name == "." || name == "..")
      return invalid(path + ": invalid path: it must consist of plain names");
    if (::mkdirat(above.descriptor(), name.c_str(), mode) != 0 && errno != EEXIST)
      return from_errno(path);
    auto below = open_directory_beneath(above, name);
    if (!below) return std::move(below).error().in(path);
    above = *std::move(below);
  }
  return above;
}

Result<void> write_file_beneath(const File& directory, const std::string& path,
                                std::string_view bytes, unsigned mode) {
  const File file = TRY(create_file_beneath(directory, path, IfThere::truncate, mode));
  return write_whole(file, bytes, path);
}

}  // namespace trainyard::os

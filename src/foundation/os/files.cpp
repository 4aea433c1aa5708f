#include "os/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/text.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::os {
namespace {

// limit of directories that remove_all has open at once; deeper ones are moved to the top first.
// Small compared to the usual limit of 1,024 descriptors, and more than the depth of usual trees.
constexpr int kOpenDirectoriesMax = 64;
// limit of repeated reads of a directory by remove_all while other processes add entries, or while
// deep trees are moved into it
constexpr int kPassesMax = 10'000;
// limit of retries if a lock file is replaced between opening and locking it
constexpr int kLockTriesMax = 100;
// first read of a file of unknown size: most files of /proc are smaller
constexpr size_t kUnsizedBytes = 4096;

Result<File> open_file(const std::string& path, int flags, unsigned mode = 0) {
  int descriptor;
  do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return from_errno("opening " + path);
  return File(descriptor);
}

Result<void> close_checked(File file, const std::string& path) {
  // Some file systems report a full disk only in close().
  if (::close(file.release()) != 0 && errno != EINTR) return from_errno("closing " + path);
  return ok();
}

// Splits "a/b/" into {"a", "b"}, "b" into {".", "b"}, and "/b" into {"/", "b"}.
std::pair<std::string, std::string> parent_and_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Opens a directory without following a link or entering a mount, even a bind mount of the same
// file system, which has the same device number.
File open_directory_beneath(int parent, const char* name) {
  open_how how = {};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  long descriptor;
  do descriptor = ::syscall(SYS_openat2, parent, name, &how, sizeof how);
  while (descriptor < 0 && errno == EINTR);
  return File(int(descriptor));
}

// Opens a directory to remove its entries. If its mode denies that to the owner, changes the mode.
File open_for_removal(int parent, const char* name) {
  File opened = open_directory_beneath(parent, name);
  if (opened) {
    struct stat status;
    if (::fstat(opened.descriptor(), &status) == 0 && (status.st_mode & 0700) != 0700)
      ::fchmod(opened.descriptor(), 0700);
    return opened;
  }
  if (errno != EACCES) return {};
  const File handle(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!handle) return {};
  const std::string itself = "/proc/self/fd/" + std::to_string(handle.descriptor());
  if (::chmod(itself.c_str(), 0700) != 0) return errno = EACCES, File();
  return open_directory_beneath(parent, name);
}

// TreeRemoval removes the content of one tree. It continues after files that it cannot remove, and
// remembers the first of them.
class TreeRemoval {
 public:
  TreeRemoval(int top, std::string path) : top_(top), path_(std::move(path)) {}

  std::optional<Error> run() {
    empty_directory(File(::dup(top_)), 1);
    return std::move(first_);
  }

 private:
  struct Closer {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };

  void failed() {
    if (!first_) first_ = from_errno("removing " + path_);
  }

  void empty_directory(File opened, int depth) {
    const std::unique_ptr<DIR, Closer> directory(opened ? ::fdopendir(opened.descriptor())
                                                        : nullptr);
    if (!directory) return failed();
    const int descriptor = opened.release();  // `directory` closes it
    // Reads the directory again after each pass that removed an entry, because a pass may miss
    // entries that are added or moved up meanwhile.
    bool progress = true;
    for (int pass = 0; progress && pass < kPassesMax; pass++) {
      ::rewinddir(directory.get());
      progress = false;
      while (const dirent* entry = ::readdir(directory.get())) {
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        const size_t length = path_.size();
        path_ += "/" + name;
        if (remove_entry(descriptor, name, entry->d_type == DT_DIR, depth)) progress = true;
        path_.resize(length);
      }
    }
  }

  // Returns true if the entry was removed from this directory.
  bool remove_entry(int parent, const std::string& name, bool is_directory, int depth) {
    if (!is_directory) {
      if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return true;
      if (errno != EISDIR) return failed(), false;
    }
    File opened = open_for_removal(parent, name.c_str());
    if (!opened && errno == ENOENT) return true;
    if (!opened) return failed(), false;
    if (depth >= kOpenDirectoriesMax) {
      opened.close();
      return move_up(parent, name);
    }
    empty_directory(std::move(opened), depth + 1);
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    return failed(), false;
  }

  bool move_up(int parent, const std::string& name) {
    for (int attempt = 0; attempt < kPassesMax; attempt++) {
      const std::string above = ".removing-" + std::to_string(moved_++);
      if (::syscall(SYS_renameat2, parent, name.c_str(), top_, above.c_str(),
                    1u /* RENAME_NOREPLACE */) == 0)
        return true;
      if (errno == ENOENT) return true;  // another process removes the same tree
      if (errno != EEXIST) break;
    }
    return failed(), false;
  }

  const int top_;
  std::string path_;
  uint64_t moved_ = 0;
  std::optional<Error> first_;
};

struct flock whole_file() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int File::release() { return std::exchange(descriptor_, -1); }

void File::close() {
  if (descriptor_ >= 0) ::close(release());
}

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const File file = TRY(open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (::fstat(file.descriptor(), &status) != 0) return from_errno("reading " + path);
  if (S_ISDIR(status.st_mode)) return from_errno("reading " + path, EISDIR);
  if (!S_ISREG(status.st_mode)) return invalid("reading " + path + ": not a regular file");

  // The size is a hint: it is 0 for files of /proc, and a file may grow while it is read.
  const size_t hint = status.st_size > 0 ? size_t(status.st_size) : kUnsizedBytes;
  std::string bytes(std::min(hint, bytes_max) + 1, '\0');
  size_t length = 0;
  for (;;) {
    if (length == bytes.size())
      bytes.resize(length + std::min<size_t>(64 << 10, bytes_max - length) + 1);
    const ssize_t got = ::read(file.descriptor(), bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno("reading " + path);
    length += size_t(got);
    if (length > bytes_max)
      return exhausted("reading " + path + ": larger than " + human_bytes(bytes_max));
    if (got == 0) break;
  }
  bytes.resize(length);
  return bytes;
}

std::optional<int64_t> read_number(const std::string& path) {
  constexpr size_t kBytesMax = 4096;  // what the kernel writes into one read of such a file
  const auto text = read_file(path, kBytesMax);
  if (!text) return {};
  const auto number = parse_int(trim(*text));
  return number ? std::optional(*number) : std::nullopt;
}

Result<void> write_file_durably(const std::string& path, std::string_view bytes, unsigned mode) {
  const auto [parent, name] = parent_and_name(path);
  const std::string neighbour =
      parent + "/" + std::string(kNeighbourPrefix) + MachineRandom().hex(8);
  const auto write_neighbour = [&]() -> Result<void> {
    File file = TRY(open_file(neighbour, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    // The umask must not reduce the mode that the caller chose.
    if (::fchmod(file.descriptor(), mode) != 0)
      return from_errno("setting the mode of " + neighbour);
    TRY(write_whole(file, bytes, neighbour));
    if (::fsync(file.descriptor()) != 0) return from_errno("syncing " + neighbour);
    TRY(close_checked(std::move(file), neighbour));
    if (::rename(neighbour.c_str(), path.c_str()) != 0) return from_errno("renaming to " + path);
    return ok();
  };
  if (auto written = write_neighbour(); !written) {
    ::unlink(neighbour.c_str());
    return std::move(written).error().in("writing " + path);
  }
  return sync_directory(parent).in("writing " + path);
}

Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode) {
  File file = TRY(open_file(path, O_WRONLY | O_CREAT | O_TRUNC, mode));
  TRY(write_whole(file, bytes, path));
  return close_checked(std::move(file), path);
}

Result<void> make_directories(const std::string& path, unsigned mode) {
  if (path.empty()) return invalid("making a directory: the path is empty");
  // Usually the directory or its parent exists.
  if (::mkdir(path.c_str(), mode) == 0) return ok();
  struct stat present;
  if (errno == EEXIST && ::stat(path.c_str(), &present) == 0 && S_ISDIR(present.st_mode))
    return ok();
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) != 0) {
      const int why = errno;
      struct stat status;
      // A parent only needs to exist; this process need not be able to write or read it.
      if (::stat(part.c_str(), &status) != 0) return from_errno("making directory " + part, why);
      if (!S_ISDIR(status.st_mode)) return from_errno("making directory " + part, EEXIST);
    }
    if (slash == std::string::npos) return ok();
  }
}

Result<void> remove_all(const std::string& path) {
  const auto [parent_path, name] = parent_and_name(path);
  if (name.empty() || name == "." || name == "..")
    return invalid("removing '" + path + "': invalid name");
  const File parent(::open(parent_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent && errno == ENOENT) return ok();
  if (!parent) return from_errno("removing " + path);
  if (::unlinkat(parent.descriptor(), name.c_str(), 0) == 0 || errno == ENOENT) return ok();
  if (errno != EISDIR) return from_errno("removing " + path);

  const File top(open_for_removal(parent.descriptor(), name.c_str()));
  if (!top && errno == ENOENT) return ok();
  if (!top && errno == EXDEV)
    return from_errno("removing " + path + ", which is a mount point", EBUSY);
  if (!top) return from_errno("removing " + path);
  if (auto error = TreeRemoval(top.descriptor(), path).run()) return std::move(*error);
  if (::unlinkat(parent.descriptor(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
    return ok();
  return from_errno("removing " + path);
}

Result<void> sync_directory(const std::string& path) {
  const File directory = TRY(open_file(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(directory.descriptor()) != 0) return from_errno("syncing " + path);
  return ok();
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return from_errno("listing " + path);
  std::vector<std::string> names;
  int why = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (!entry) {
      why = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  if (why != 0) return from_errno("listing " + path, why);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Uses a lock of the open file description. Unlike classic POSIX locks it excludes other holders in
// the same process, and unlike flock() it can be queried without being taken.
Result<FileLock> FileLock::take(const std::string& path) {
  for (int attempt = 0; attempt < kLockTriesMax; attempt++) {
    File file = TRY(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600).in("locking"));
    struct flock lock = whole_file();
    if (::fcntl(file.descriptor(), F_OFD_SETLK, &lock) != 0) {
      if (errno != EAGAIN && errno != EACCES) return from_errno("locking " + path);
      const auto holder = read_file(path, 4096);
      const std::string_view process = holder ? trim(*holder) : std::string_view();
      return conflict(path + " is locked by " +
                      (process.empty() ? "another process" : "process " + shorten(process, 32)) +
                      ": wait until it ends, or stop it");
    }
    // The file may have been removed between opening and locking. A lock on a removed file excludes
    // no process.
    struct stat ours, named;
    if (::fstat(file.descriptor(), &ours) != 0) return from_errno("locking " + path);
    if (::stat(path.c_str(), &named) != 0 || ours.st_ino != named.st_ino ||
        ours.st_dev != named.st_dev)
      continue;
    const std::string process = std::to_string(::getpid()) + "\n";
    TRY(write_whole(file, process, path));
    // Written before it is truncated: file systems flush a file at its close if it was truncated
    // and then written.
    if (ours.st_size > off_t(process.size()) &&
        ::ftruncate(file.descriptor(), off_t(process.size())) != 0)
      return from_errno("locking " + path);
    return FileLock(std::move(file));
  }
  return unavailable("locking " + path + ": gave up, because the file is replaced repeatedly");
}

Result<FileLock> FileLock::take_after_death(const std::string& path, Duration at_most) {
  auto lock = take(path);
  if (lock || lock.error().kind != Kind::conflict) return lock;
  const auto holder = read_file(path, 4096);
  const auto process = holder ? parse_int(trim(*holder)) : Result<int64_t>(holder.error());
  const bool gone = process && *process > 0 && ::kill(pid_t(*process), 0) != 0 && errno == ESRCH;
  return gone ? take_within(path, at_most) : std::move(lock);
}

// Polls, because the call that waits for the release of a lock has no deadline.
Result<FileLock> FileLock::take_within(const std::string& path, Duration at_most) {
  constexpr Duration kPause = 5ms;
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    auto lock = take(path);
    if (lock || lock.error().kind != Kind::conflict || std::chrono::steady_clock::now() >= deadline)
      return lock;
    std::this_thread::sleep_for(kPause);
  }
}

bool FileLock::held(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return false;
  struct flock lock = whole_file();
  if (::fcntl(file.descriptor(), F_OFD_GETLK, &lock) != 0) return false;
  return lock.l_type != F_UNLCK;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    file_ = std::move(other.file_);
  }
  return *this;
}

void FileLock::release() {
  if (!file_) return;
  // Unlocks explicitly, because a child that is just being started may have a copy of the
  // descriptor for a moment longer.
  struct flock lock = whole_file();
  lock.l_type = F_UNLCK;
  ::fcntl(file_.descriptor(), F_OFD_SETLK, &lock);
  file_.close();
}

}  // namespace trainyard::os

#include "agent/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <vector>

namespace trainyard::agent {
namespace {

Result<host::File> open_beneath(int directory, const std::string& path, uint64_t flags) {
  struct open_how how {};
  how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long descriptor =
      ::syscall(SYS_openat2, directory, path.empty() ? "." : path.c_str(), &how, sizeof how);
  if (descriptor < 0) {
    if (errno == ELOOP || errno == EXDEV) return invalid(path + ": leads through a link");
    return from_errno(path);
  }
  return host::File(static_cast<int>(descriptor));
}

std::string read_link(int directory, const std::string& name) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return target;
}

Result<std::vector<std::string>> names_in(const host::File& directory) {
  const int copy = ::fcntl(directory.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return from_errno("listing a directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), ::closedir);
  if (!listing) {
    const auto error = from_errno("listing a directory");
    ::close(copy);
    return error;
  }
  std::vector<std::string> names;
  ::rewinddir(listing.get());
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> walk_below(const host::File& directory, const std::string& prefix, int depth,
                        const Tree::Visitor& visitor) {
  for (const auto& name : TRY(names_in(directory))) {
    Tree::Entry entry;
    entry.path = prefix + name;
    if (::fstatat(directory.descriptor(), name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISLNK(entry.status.st_mode)) entry.link_target = read_link(directory.descriptor(), name);
    const bool is_directory = S_ISDIR(entry.status.st_mode);
    entry.too_deep = is_directory && depth >= kTreeDepthMax;
    TRY(visitor(entry));
    if (!is_directory || entry.too_deep) continue;
    auto below = open_beneath(directory.descriptor(), name, O_RDONLY | O_DIRECTORY);
    if (!below) continue;  // it is gone or became something else
    TRY(walk_below(*below, entry.path + "/", depth + 1, visitor));
  }
  return {};
}

}  // namespace

Result<Tree> Tree::open(const std::string& directory) {
  host::File root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return from_errno("opening " + directory);
  return Tree(std::move(root));
}

Result<void> Tree::walk(const std::string& directory, const Visitor& visitor) const {
  const auto start = open_beneath(root_.descriptor(), directory, O_RDONLY | O_DIRECTORY);
  if (!start) return {};
  return walk_below(*start, "", 1, visitor);
}

bool Tree::has_files(const std::string& directory) const {
  const auto walked = walk(directory, [](const Entry& entry) -> Result<void> {
    if (S_ISREG(entry.status.st_mode) || S_ISLNK(entry.status.st_mode)) return conflict("there is one");
    return {};
  });
  return !walked;
}

Result<host::File> Tree::open_file(const std::string& path) const {
  // Without waiting: a pipe of that name must not hold us.
  auto file = TRY(open_beneath(root_.descriptor(), path, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return from_errno(path);
  if (!S_ISREG(status.st_mode)) return invalid(path + ": is not a regular file");
  return file;
}

Result<host::File> Tree::open_parent(const std::string& path) const {
  const size_t slash = path.rfind('/');
  return open_beneath(root_.descriptor(), slash == std::string::npos ? "" : path.substr(0, slash),
                      O_RDONLY | O_DIRECTORY);
}

Result<void> Tree::touch(const std::string& path) const {
  const auto parent = TRY(open_parent(path));
  const std::string name = path.substr(path.rfind('/') + 1);
  const host::File file(::openat(parent.descriptor(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno != EEXIST) return from_errno(path);
  return {};
}

Result<void> Tree::remove(const std::string& path) const {
  const auto parent = open_parent(path);
  if (!parent && parent.error().kind == Kind::not_found) return {};
  if (!parent) return parent.error();
  const std::string name = path.substr(path.rfind('/') + 1);
  if (::unlinkat(parent->descriptor(), name.c_str(), 0) != 0 && errno != ENOENT) return from_errno(path);
  return {};
}

std::string Tree::read_start(const std::string& path, size_t bytes_max) const {
  const auto file = open_file(path);
  if (!file) return "";
  std::string bytes(bytes_max, '\0');
  size_t have = 0;
  while (have < bytes_max) {
    const ssize_t got =
        ::pread(file->descriptor(), bytes.data() + have, bytes_max - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace trainyard::agent

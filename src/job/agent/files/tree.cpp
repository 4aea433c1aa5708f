#include "agent/files/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <vector>

namespace trainyard::agent {
namespace {

std::string read_link(int directory, const std::string& name) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return target;
}

// The limit of names that a walk reads, and how many of them may still be read.
struct NamesLeft {
  const size_t max;
  size_t left = max;
};

// Reads the names of a directory, and reduces the number of names that may still be read.
Result<std::vector<std::string>> names_in(const os::File& directory, NamesLeft& names_left) {
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
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names_left.left == 0)
      return exhausted("more than " + std::to_string(names_left.max) +
                       " files and directories: pack them into archives");
    --names_left.left;
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> walk_below(const os::File& directory, const std::string& prefix, int depth,
                        NamesLeft& left, const Tree::Visitor& visitor) {
  for (const auto& name : TRY(names_in(directory, left))) {
    Tree::Entry entry;
    entry.path = prefix + name;
    if (::fstatat(directory.descriptor(), name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISLNK(entry.status.st_mode)) entry.link_target = read_link(directory.descriptor(), name);
    const bool is_directory = S_ISDIR(entry.status.st_mode);
    entry.too_deep = is_directory && depth >= kTreeDepthMax;
    TRY(visitor(entry));
    if (!is_directory || entry.too_deep) continue;
    auto below = os::open_directory_beneath(directory, name);
    if (!below) continue;  // it was deleted, has another type by now, or is a mount point
    TRY(walk_below(*below, entry.path + "/", depth + 1, left, visitor));
  }
  return {};
}

}  // namespace

Result<Tree> Tree::open(const std::string& directory) {
  return Tree(TRY(os::open_confined_directory(directory)));
}

Result<void> Tree::walk(const std::string& directory, const Visitor& visitor,
                        size_t names_max) const {
  const auto start = os::open_directory_beneath(root_, directory);
  if (!start) return {};
  NamesLeft left{names_max};
  return walk_below(*start, "", 1, left, visitor);
}

bool Tree::has_files(const std::string& directory) const {
  const auto walked = walk(directory, [](const Entry& entry) -> Result<void> {
    if (S_ISREG(entry.status.st_mode) || S_ISLNK(entry.status.st_mode))
      return conflict("a file was found");
    return {};
  });
  return !walked;
}

Result<Tree> Tree::below(const std::string& directory) const {
  return Tree(TRY(os::open_directory_beneath(root_, directory)));
}

Result<Tree> Tree::make(const std::string& directory, unsigned mode) const {
  return Tree(TRY(os::make_directories_beneath(root_, directory, mode)));
}

Result<os::File> Tree::open_file(const std::string& path) const {
  return os::open_file_beneath(root_, path);
}

Result<os::File> Tree::create_file(const std::string& path, os::IfThere if_there,
                                   unsigned mode) const {
  return os::create_file_beneath(root_, path, if_there, mode);
}

Result<void> Tree::write(const std::string& path, std::string_view bytes) const {
  return os::write_file_beneath(root_, path, bytes);
}

Result<void> Tree::make_link(const std::string& path, const std::string& target) const {
  TRY(remove(path));
  const auto parent = TRY(open_parent(path));
  const std::string name = path.substr(path.rfind('/') + 1);
  if (::symlinkat(target.c_str(), parent.descriptor(), name.c_str()) != 0)
    return from_errno("making the link " + path);
  return {};
}

Result<void> Tree::set_mode(const std::string& directory, unsigned mode) const {
  const auto opened = TRY(os::open_directory_beneath(root_, directory));
  if (::fchmod(opened.descriptor(), mode) != 0)
    return from_errno("opening " + directory + " to the job");
  return {};
}

Result<uint64_t> Tree::free_bytes() const {
  struct statvfs volume {};
  if (::fstatvfs(root_.descriptor(), &volume) != 0)
    return from_errno("reading the free space of a disk");
  return static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
}

Result<os::File> Tree::open_parent(const std::string& path) const {
  const size_t slash = path.rfind('/');
  return os::open_directory_beneath(root_, slash == std::string::npos ? "" : path.substr(0, slash));
}

Result<void> Tree::touch(const std::string& path) const {
  const auto parent = TRY(open_parent(path));
  const std::string name = path.substr(path.rfind('/') + 1);
  const os::File file(::openat(parent.descriptor(), name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno != EEXIST) return from_errno(path);
  return {};
}

Result<void> Tree::remove(const std::string& path) const {
  const auto parent = open_parent(path);
  if (!parent && parent.error().kind == Kind::not_found) return {};
  if (!parent) return parent.error();
  const std::string name = path.substr(path.rfind('/') + 1);
  if (::unlinkat(parent->descriptor(), name.c_str(), 0) != 0 && errno != ENOENT)
    return from_errno(path);
  return {};
}

std::string Tree::read_start(const std::string& path, size_t bytes_max) const {
  const auto file = open_file(path);
  if (!file) return "";
  std::string bytes(bytes_max, '\0');
  size_t have = 0;
  while (have < bytes_max) {
    const ssize_t got = ::pread(file->descriptor(), bytes.data() + have, bytes_max - have,
                                static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace trainyard::agent

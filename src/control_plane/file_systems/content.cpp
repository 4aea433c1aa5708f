#include "file_systems/content.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "file_systems/check.hpp"
#include "os/beneath.hpp"

namespace trainyard::file_systems {
namespace {

constexpr const char* kFiles = "files";
constexpr const char* kWork = "work";
constexpr const char* kBoot = "boot";
// Jobs of any user may read and write: access is controlled by the right to mount the file system
// (docs/operating/fsx).
constexpr mode_t kDirectoryMode = 0777, kFileMode = 0666;
constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kBootBytesMax = 256;
// openat2 takes paths of less than 4096 bytes
constexpr size_t kPathBytesMax = 4'000;
constexpr size_t kEntryBytes = 128;              // memory of an entry in addition to its path
constexpr size_t kEntriesBetweenChecks = 1'024;  // entries between two checks for cancellation
constexpr const char* kAttribute = "user.trainyard.exchanged";  // the extended attribute
constexpr size_t kAttributeBytes = 32;

Instant time_of(const struct stat& status) {
  return Instant{
      Duration{int64_t(status.st_mtim.tv_sec) * 1000 + status.st_mtim.tv_nsec / 1'000'000}};
}

int64_t modified_ns_of(const struct stat& status) {
  return int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + int64_t(status.st_mtim.tv_nsec);
}

// Makes the mark of a file that S3 has. It does not match after the file is written, moved or
// copied.
std::string mark_of(LastExchange exchange, const std::string& path, int64_t modified_ns,
                    uint64_t bytes) {
  const std::string facts = (exchange == LastExchange::imported ? "imported " : "exported ") +
                            std::to_string(modified_ns) + " " + std::to_string(bytes) + " " + path;
  return to_hex(bytes_of(sha256(facts))).substr(0, kAttributeBytes);
}

LastExchange read_mark(const os::File& file, const std::string& path, int64_t modified_ns,
                       uint64_t bytes) {
  char mark[kAttributeBytes];
  if (::fgetxattr(file.descriptor(), kAttribute, mark, sizeof mark) != ssize_t(sizeof mark))
    return LastExchange::unknown;
  for (const auto exchange : {LastExchange::imported, LastExchange::exported})
    if (std::string_view(mark, sizeof mark) == mark_of(exchange, path, modified_ns, bytes))
      return exchange;
  return LastExchange::unknown;
}

// Sets the mark. Failures are ignored: without it, files are only compared with their objects.
void set_mark(const os::File& file, const std::string& mark) {
  static_cast<void>(::fsetxattr(file.descriptor(), kAttribute, mark.data(), mark.size(), 0));
}

// Gives a new file or directory the mode and owner by which jobs can change it.
Result<void> give_to_jobs(const os::File& file, mode_t mode, const domain::PosixUser& owner,
                          const std::string& path) {
  if (::fchmod(file.descriptor(), mode) != 0) return from_errno(path);
  // Without root's rights, jobs have the server's user.
  if (::fchown(file.descriptor(), owner.user_id, owner.group_id) != 0 && errno != EPERM)
    return from_errno(path);
  return {};
}

// Opens a directory, and creates missing parts of its path for jobs.
Result<os::File> open_or_make(const os::File& files, const std::string& path,
                              const domain::PosixUser& owner) {
  os::File above = TRY(os::open_directory_beneath(files, ""));
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    const std::string name(part);
    const bool made = ::mkdirat(above.descriptor(), name.c_str(), kDirectoryMode) == 0;
    if (!made && errno != EEXIST) return from_errno(path);
    auto below = os::open_directory_beneath(above, name);
    if (!below) return std::move(below).error().in(path);
    if (made) TRY(give_to_jobs(*below, kDirectoryMode, owner, path));
    above = *std::move(below);
  }
  return above;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

struct Entries {
  std::vector<std::string> directories;
  std::vector<std::pair<std::string, FileFacts>> files;
  std::vector<std::string> others;
};

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

// Limits a walk: counts the memory of its entries, and sometimes checks whether it is cancelled.
class Walk {
 public:
  explicit Walk(const WalkLimits& limits) : limits_(limits), left_(limits.bytes_max) {}

  // Errors: exhausted.
  Result<void> take(const std::string& path, const std::string& name) {
    const size_t bytes = path.size() + name.size() + kEntryBytes;
    if (bytes > left_)
      return exhausted("there are more files than can be listed: their paths have more than " +
                       human_bytes(limits_.bytes_max));
    left_ -= bytes;
    return {};
  }
  // Errors: cancelled.
  Result<void> check() {
    if (entries_++ % kEntriesBetweenChecks == 0 && limits_.cancelled())
      return cancelled("listing files was cancelled");
    return {};
  }

 private:
  const WalkLimits& limits_;
  size_t left_;
  size_t entries_ = 0;
};

// Calls `visit` with the descriptor of a directory, and the name and status of each entry.
using Visit = std::function<Result<void>(int, const std::string&, const struct stat&)>;
Result<void> visit_directory(os::File opened, const std::string& path, Walk& walk,
                             const Visit& visit) {
  const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(opened.descriptor()));
  if (!stream) return from_errno(path);
  const int descriptor = opened.release();  // `stream` closes it
  TRY(walk.check());
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    TRY(walk.check());
    struct stat status = {};
    if (::fstatat(descriptor, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      TRY(visit(descriptor, name, status));
    else if (errno != ENOENT)  // removed meanwhile
      return from_errno(path + "/" + name);
    errno = 0;
  }
  if (errno != 0) return from_errno(path);
  return {};
}

Result<Entries> read_directory(os::File opened, const std::string& path, Walk& walk) {
  Entries entries;
  TRY(visit_directory(
      std::move(opened), path, walk,
      [&](int, const std::string& name, const struct stat& status) -> Result<void> {
        TRY(walk.take(path, name));
        if (S_ISDIR(status.st_mode))
          entries.directories.push_back(name);
        else if (S_ISREG(status.st_mode))
          entries.files.push_back({name, {uint64_t(status.st_size), time_of(status)}});
        else
          entries.others.push_back(name);
        return {};
      }));
  return entries;
}

Result<void> list_below(const os::File& root, const std::string& start, Files& files, Walk& walk,
                        const std::function<void(FileFailure)>& skipped) {
  std::vector<std::string> pending{start};
  while (!pending.empty()) {
    const std::string path = std::move(pending.back());
    pending.pop_back();
    auto opened = os::open_directory_beneath(root, path);
    if (!opened) {
      if (opened.error().kind == Kind::not_found) continue;  // removed meanwhile
      skipped({path, "InternalError", opened.error().message});
      continue;
    }
    const Entries entries = TRY(read_directory(*std::move(opened), path, walk));
    for (const auto& name : entries.others)
      skipped({joined(path, name), "S3ObjectPathNotPosixCompliant",
               "'" + shorten(to_utf8(joined(path, name)), 120) +
                   "' is a link or a special file, which is not exported"});
    for (const auto& [name, facts] : entries.files) files[joined(path, name)] = facts;
    for (const auto& name : entries.directories) {
      if (path.size() + name.size() < kPathBytesMax)
        pending.push_back(joined(path, name));
      else
        skipped({joined(path, name), "PathSizeTooLong", "a directory's path is too long"});
    }
  }
  return {};
}

// Removes files while it reads their directory, without a list of them.
Result<void> remove_files_below(const os::File& root, const std::string& start, Walk& walk) {
  std::vector<std::string> pending{start};
  while (!pending.empty()) {
    const std::string path = std::move(pending.back());
    pending.pop_back();
    auto opened = os::open_directory_beneath(root, path);
    if (!opened) continue;  // removed or replaced meanwhile
    TRY(visit_directory(
        *std::move(opened), path, walk,
        [&](int directory, const std::string& name, const struct stat& status) -> Result<void> {
          if (S_ISREG(status.st_mode) && ::unlinkat(directory, name.c_str(), 0) != 0 &&
              errno != ENOENT)
            return from_errno(joined(path, name));
          if (!S_ISDIR(status.st_mode) || path.size() + name.size() >= kPathBytesMax) return {};
          TRY(walk.take(path, name));
          pending.push_back(joined(path, name));
          return {};
        }));
  }
  return {};
}

// Writes the pieces to an open file.
Result<uint64_t> write_pieces(const os::File& file, const std::string& path,
                              const Content::NextPiece& next) {
  std::vector<char> piece(kPieceBytes);
  uint64_t total = 0;
  while (const size_t got = TRY(next(piece))) {
    TRY(os::write_whole(file, std::string_view(piece.data(), got), path));
    total += got;
  }
  return total;
}

}  // namespace

std::string files_directory(const std::string& root, const std::string& id) {
  return root + "/" + id + "/" + kFiles;
}

Result<Content> Content::open(const std::string& root, const std::string& id,
                              const std::string& boot, bool unfinished, domain::PosixUser owner) {
  const std::string path = root + "/" + id;
  const std::string boot_file = path + "/" + kBoot;
  TRY(os::make_directories(root, 0700));
  if (unfinished && os::exists(path)) {
    const auto last = os::read_file(boot_file, kBootBytesMax);
    if (boot.empty() || !last || *last != boot) TRY(os::remove_all(path));
  }
  TRY(os::remove_all(path + "/" + kWork));
  TRY(os::make_directories(path + "/" + kFiles, 0700));
  TRY(os::make_directories(path + "/" + kWork, 0700));
  TRY(os::write_file(boot_file, boot));
  os::File directory = TRY(os::open_confined_directory(path));
  os::File files = TRY(os::open_directory_beneath(directory, kFiles));
  os::File work = TRY(os::open_directory_beneath(directory, kWork));
  TRY(give_to_jobs(files, kDirectoryMode, owner, path));
  return Content(std::move(directory), std::move(files), std::move(work), owner);
}

Result<Files> Content::list(const std::vector<std::string>& paths,
                            const std::function<void(FileFailure)>& skipped,
                            const WalkLimits& limits) const {
  Files files;
  Walk walk(limits);
  const std::vector<std::string> all{""};
  for (const auto& path : paths.empty() ? all : paths) {
    const auto opened = path.empty() ? Result<OpenFile>(invalid("")) : read(path);
    if (opened) {
      files[path] = opened->facts;
      continue;
    }
    auto directory = os::open_directory_beneath(files_, path);
    if (!directory) {
      skipped({path, "InternalError", directory.error().message});
      continue;
    }
    TRY(list_below(files_, path, files, walk, skipped));
  }
  return files;
}

Result<uint64_t> Content::write(const std::string& path, Instant modified, size_t number,
                                const NextPiece& next) const {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const os::File directory =
      TRY(open_or_make(files_, slash == std::string::npos ? "" : path.substr(0, slash), owner_));
  const std::string temporary = std::to_string(number);
  const auto written = [&]() -> Result<uint64_t> {
    const os::File file =
        TRY(os::create_file_beneath(work_, temporary, os::IfThere::truncate, kFileMode));
    const uint64_t bytes = TRY(write_pieces(file, path, next));
    TRY(give_to_jobs(file, kFileMode, owner_, path));
    const int64_t time = to_milliseconds(modified);
    const timespec times[2] = {{time / 1000, (time % 1000) * 1'000'000},
                               {time / 1000, (time % 1000) * 1'000'000}};
    if (::futimens(file.descriptor(), times) != 0) return from_errno(path);
    struct stat status = {};
    if (::fstat(file.descriptor(), &status) != 0) return from_errno(path);
    set_mark(file, mark_of(LastExchange::imported, path, modified_ns_of(status), bytes));
    if (::renameat(work_.descriptor(), temporary.c_str(), directory.descriptor(), name.c_str()) !=
        0)
      return from_errno(path);
    return bytes;
  }();
  if (!written) ::unlinkat(work_.descriptor(), temporary.c_str(), 0);
  return written;
}

Result<void> Content::make_directory(const std::string& path) const {
  TRY(open_or_make(files_, path, owner_));
  return {};
}

Result<OpenFile> Content::read(const std::string& path) const {
  OpenFile open;
  open.file = TRY(os::open_file_beneath(files_, path));
  struct stat status = {};
  if (::fstat(open.file.descriptor(), &status) != 0) return from_errno(path);
  open.facts = {uint64_t(status.st_size), time_of(status)};
  open.mode = status.st_mode;
  open.user = status.st_uid;
  open.group = status.st_gid;
  open.modified_ns = modified_ns_of(status);
  open.unchanged_since = read_mark(open.file, path, open.modified_ns, open.facts.bytes);
  return open;
}

void Content::mark_exported(const std::string& path, const OpenFile& read) const {
  set_mark(read.file, mark_of(LastExchange::exported, path, read.modified_ns, read.facts.bytes));
}

Result<size_t> read_piece(const OpenFile& open, std::span<char> piece) {
  ssize_t got;
  do got = ::read(open.file.descriptor(), piece.data(), piece.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) return from_errno("reading a file");
  return size_t(got);
}

Result<void> Content::remove(const std::string& path) const {
  const size_t slash = path.rfind('/');
  auto opened =
      os::open_directory_beneath(files_, slash == std::string::npos ? "" : path.substr(0, slash));
  if (!opened && opened.error().kind == Kind::not_found) return {};
  const os::File directory = TRY(std::move(opened));
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (::unlinkat(directory.descriptor(), name.c_str(), 0) != 0 && errno != ENOENT)
    return from_errno(path);
  return {};
}

Result<void> Content::remove_below(const std::string& path, const WalkLimits& limits) const {
  if (!path.empty() && read(path)) return remove(path);
  Walk walk(limits);
  return remove_files_below(files_, path, walk);
}

Result<void> Content::sync() const {
  if (::syncfs(directory_.descriptor()) != 0) return from_errno("making files durable");
  return {};
}

Result<void> remove_content(const std::string& root, const std::string& id) {
  return os::remove_all(root + "/" + id);
}

}  // namespace trainyard::file_systems

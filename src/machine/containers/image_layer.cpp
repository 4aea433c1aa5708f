#include "containers/image_layer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <set>
#include <vector>

#include "base/text.hpp"
#include "containers/id_range.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::containers {
namespace {

constexpr Duration kUnpackMax = 30min;  // a large layer on a slow disk
constexpr int kDepthMax = 256;          // two descriptors each; real images are far less deep
constexpr size_t kListBytesMax = size_t{1} << 30;
constexpr std::string_view kRemoved = ".wh.", kOpaque = ".wh..wh..opq", kNotes = ".wh..wh.";

std::string tree_of(const std::string& layer) { return layer + "/tree"; }
std::string list_of(const std::string& layer) { return layer + "/directories"; }
std::string size_of(const std::string& layer) { return layer + "/bytes"; }

// Converts "./usr/lib/" to "usr/lib".
std::string_view clean(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  return name == "." ? "" : name;
}

// Returns the program that decompresses the archive, by its first bytes. igzip, if it is installed,
// needs half of gzip's time.
std::string reader_of(const std::string& archive) {
  const os::File file(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4> magic{};
  const bool read =
      file && ::read(file.descriptor(), magic.data(), magic.size()) == ssize_t(magic.size());
  const std::string_view first(magic.data(), read ? magic.size() : 0);
  if (first.starts_with("\x1f\x8b")) return os::on_path("igzip") ? "igzip -dc" : "gzip -dc";
  if (first == "\x28\xb5\x2f\xfd") return "zstd -qdc";
  return "cat";
}

// Returns true if unpacked files keep their owners. If this process has only one id, as an ordinary
// user may, all files belong to it.
bool keeps_owners() {
  static const bool several = [] {
    const auto text = os::read_file("/proc/self/uid_map", 64 << 10);
    return ::geteuid() == 0 && (!text || parse_own_ids(*text).count > 1);
  }();
  return several;
}

// Counts the lines of a growing file.
class LineCount {
 public:
  explicit LineCount(std::string path) : path_(std::move(path)) {}
  uint64_t now() {
    if (!file_) file_ = os::File(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 64 << 10> buffer;
    while (file_) {
      const ssize_t got = ::read(file_.descriptor(), buffer.data(), buffer.size());
      if (got <= 0) break;
      lines_ += uint64_t(std::count(buffer.begin(), buffer.begin() + got, '\n'));
    }
    return lines_;
  }

 private:
  const std::string path_;
  os::File file_;
  uint64_t lines_ = 0;
};

Result<void> extract(const std::string& archive, const std::string& directory,
                     const LayerLimits& limits) {
  TRY(os::make_directories(tree_of(directory), 0755));
  // Some archives have no end marker (zeros), so one is appended. Bytes after an end marker are
  // read too, since the decompressor, whose exit code is checked, would fail at a closed pipe. Only
  // `limit` bytes of the unpacked archive are passed; if there are more, a file records it and the
  // unpacking ends.
  const std::string script =
      "archive=$1 limit=$2 over=$3; shift 3; { " + reader_of(archive) +
      " \"$archive\" | { head -c \"$limit\"; more=$(head -c 1 | wc -c); "
      "if [ \"$more\" != 0 ]; then : > \"$over\"; exit 1; fi; } && head -c 10240 /dev/zero; } | "
      "{ tar --extract --file=- \"$@\"; code=$?; cat >/dev/null; exit $code; }";
  const std::string over = directory + "/over", names = list_of(directory) + ".all";
  const std::vector<std::string> words{"bash",
                                       "-o",
                                       "pipefail",
                                       "-c",
                                       script,
                                       "bash",
                                       archive,
                                       std::to_string(limits.bytes_max),
                                       over,
                                       "--directory=" + tree_of(directory),
                                       "--preserve-permissions",
                                       "--numeric-owner",
                                       keeps_owners() ? "--same-owner" : "--no-same-owner",
                                       "--delay-directory-restore",
                                       "--warning=no-timestamp",
                                       "--verbose",
                                       "--quoting-style=literal",
                                       "--index-file=" + names};
  LineCount entries(names);
  const auto within = [&] { return entries.now() <= limits.entries_max; };
  const auto unpacked = os::run_or_fail({words, {{"LC_ALL", "C"}}, "", "", kUnpackMax, within});
  if (os::exists(over))
    return exhausted("unpacking a layer of the image: more than " + human_bytes(limits.bytes_max) +
                     " of data");
  if (!within())
    return exhausted("unpacking a layer of the image: more than " +
                     std::to_string(limits.entries_max) + " files");
  TRY(unpacked);
  // Only the names of directories are needed later.
  std::string directories;
  const std::string all = TRY(os::read_file(names, kListBytesMax));
  for (const auto line : split(all, '\n'))
    if (line.ends_with('/')) directories.append(clean(line)).append("\n");
  TRY(os::write_file(list_of(directory), directories, 0600));
  // du prints "BYTES<tab>PATH".
  const std::string size =
      TRY(os::run_or_fail({{"du", "-s", "-B1", tree_of(directory)}, {}, "", "", kUnpackMax}));
  const int64_t used = TRY(parse_int(size.substr(0, size.find('\t'))).in("reading a layer's size"));
  const uint64_t bytes = std::max(uint64_t(used), entries.now() * kBytesPerInode);
  TRY(os::write_file(size_of(directory), std::to_string(bytes), 0600));
  return os::remove_all(names);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

Result<std::vector<std::string>> names_in(int descriptor) {
  const int copy = ::openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseDirectory> directory(copy < 0 ? nullptr : ::fdopendir(copy));
  if (!directory) {
    if (copy >= 0) ::close(copy);
    return from_errno("reading a layer's directory");
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get()))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      names.emplace_back(entry->d_name);
  return names;
}

class Laying {
 public:
  explicit Laying(std::set<std::string, std::less<>> named) : named_(std::move(named)) {}

  // Links the content of `from` over that of `to`; `path` is its path below the root.
  Result<void> directory(const os::File& from, const os::File& to, const std::string& path,
                         int depth) {
    if (depth > kDepthMax)
      return invalid("combining layers: directories nested too deeply: " + shorten(path, 200));
    const auto names = TRY(names_in(from.descriptor()));
    for (const auto& name : names)
      if (name == kOpaque) {
        for (const auto& old : TRY(names_in(to.descriptor()))) TRY(remove(to, old));
      } else if (name.starts_with(kRemoved) && !name.starts_with(kNotes)) {
        const std::string gone = name.substr(kRemoved.size());
        if (!gone.empty() && gone != "." && gone != "..") TRY(remove(to, gone));
      }
    for (const auto& name : names)
      if (!name.starts_with(kRemoved))
        TRY(entry(from, to, name, path.empty() ? name : path + "/" + name, depth));
    return ok();
  }

 private:
  static Result<void> remove(const os::File& directory, const std::string& name) {
    return os::remove_all("/proc/self/fd/" + std::to_string(directory.descriptor()) + "/" + name);
  }

  Result<void> entry(const os::File& from, const os::File& to, const std::string& name,
                     const std::string& path, int depth) {
    struct stat ours, theirs;
    if (::fstatat(from.descriptor(), name.c_str(), &ours, AT_SYMLINK_NOFOLLOW) != 0)
      return failed("reading the status of", path);
    bool there = ::fstatat(to.descriptor(), name.c_str(), &theirs, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && !(S_ISDIR(ours.st_mode) && S_ISDIR(theirs.st_mode))) {
      TRY(remove(to, name));
      there = false;
    }
    if (!S_ISDIR(ours.st_mode)) {
      if (::linkat(from.descriptor(), name.c_str(), to.descriptor(), name.c_str(), 0) != 0)
        return failed("linking", path);
      return ok();
    }
    if (!there && ::mkdirat(to.descriptor(), name.c_str(), 0700) != 0)
      return failed("making", path);
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const os::File inner_from(::openat(from.descriptor(), name.c_str(), kFlags));
    const os::File inner_to(::openat(to.descriptor(), name.c_str(), kFlags));
    if (!inner_from || !inner_to) return failed("opening", path);
    TRY(directory(inner_from, inner_to, path, depth + 1));
    if (there && !named_.contains(path)) return ok();
    return take_over(inner_to, ours, path);
  }

  // Sets the owner first, since that may clear bits of the mode, then the mode, then the times.
  static Result<void> take_over(const os::File& directory, const struct stat& like,
                                const std::string& path) {
    const timespec times[2] = {like.st_atim, like.st_mtim};
    if ((keeps_owners() && ::fchown(directory.descriptor(), like.st_uid, like.st_gid) != 0) ||
        ::fchmod(directory.descriptor(), like.st_mode & 07777) != 0 ||
        ::futimens(directory.descriptor(), times) != 0)
      return failed("setting the mode of", path);
    return ok();
  }

  static Error failed(const char* doing, const std::string& path) {
    return from_errno(std::string(doing) + " " + shorten(path, 300));
  }

  const std::set<std::string, std::less<>> named_;  // directories that the archive lists
};

}  // namespace

Result<void> unpack_layer(const std::string& archive, const std::string& directory,
                          const LayerLimits& limits) {
  TRY(os::make_directories(directory, 0700));
  auto done = extract(archive, directory, limits);
  if (!done) (void)os::remove_all(directory);
  return done;
}

uint64_t file_bytes(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? uint64_t(status.st_size) : 0;
}

uint64_t layer_bytes(const std::string& layer_directory) {
  const auto text = os::read_file(size_of(layer_directory), 64);
  const auto number = text ? parse_int(*text) : Result<int64_t>(text.error());
  return number && *number > 0 ? uint64_t(*number) : 0;
}

Result<void> link_layer_into(const std::string& layer_directory, const std::string& root) {
  std::set<std::string, std::less<>> named;
  const std::string list = TRY(os::read_file(list_of(layer_directory), kListBytesMax));
  for (const auto line : split(list, '\n')) named.emplace(line);
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const os::File from(::open(tree_of(layer_directory).c_str(), kFlags)),
      to(::open(root.c_str(), kFlags));
  if (!from || !to)
    return from_errno("opening the layer " + layer_directory + " and the root " + root);
  return Laying(std::move(named)).directory(from, to, "", 0);
}

}  // namespace trainyard::containers

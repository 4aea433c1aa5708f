#include "cache/block_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/arithmetic.hpp"
#include "os/disk.hpp"
#include "os/files.hpp"

namespace trainyard::cache {
namespace {

constexpr uint64_t kDiskShare = 10;      // the cache's share of a disk: 1 / 10
constexpr uint64_t kTrimsPerLimit = 32;  // the directory is read after this part of the limit
constexpr uint64_t kUsedAfterTrim = 90;  // percent of the limit
constexpr uint64_t kFileBytesMax = kBlockBytes + kIdentityBytesMax + 64;
// Neighbours that are so much older than the newest file were left by a crash.
constexpr time_t kNeighbourSecondsMax = 3600;

struct Found {
  timespec used;
  uint64_t bytes;
  std::string path;
};

bool earlier(const Found& a, const Found& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

// All blocks; files that a crash left while they were written are removed.
Result<std::vector<Found>> find_blocks(const std::string& directory) {
  std::vector<Found> found, neighbours;
  time_t newest = 0;
  for (const auto& folder : TRY(os::list_directory(directory))) {
    if (folder.size() != 2) continue;
    const auto names = os::list_directory(directory + "/" + folder);
    if (!names) continue;
    for (const auto& name : *names) {
      const std::string path = directory + "/" + folder + "/" + name;
      struct stat status;
      if (::lstat(path.c_str(), &status) != 0) continue;
      newest = std::max(newest, status.st_mtim.tv_sec);
      auto& kind = name.starts_with(os::kNeighbourPrefix) ? neighbours : found;
      kind.push_back({status.st_mtim, uint64_t(status.st_blocks) * 512, path});
    }
  }
  for (const auto& each : neighbours)
    if (newest - each.used.tv_sec > kNeighbourSecondsMax) ::unlink(each.path.c_str());
  return found;
}

}  // namespace

CacheSettings tenth_of_disk(const std::string& directory) {
  struct statvfs disk {};
  std::string there = directory;
  while (::statvfs(there.c_str(), &disk) != 0 && there.find('/') != std::string::npos &&
         there.size() > 1)
    there.resize(there.rfind('/'));
  const uint64_t bytes = uint64_t(disk.f_blocks) * disk.f_frsize;
  return {directory, bytes / kDiskShare, bytes / (2 * kDiskShare)};
}

Result<std::unique_ptr<BlockCache>> BlockCache::open(CacheSettings settings) {
  // Blocks are of any job: no other user may read them.
  TRY(os::make_directories(settings.directory, 0700));
  return std::unique_ptr<BlockCache>(new BlockCache(std::move(settings)));
}

Result<std::optional<std::string>> BlockCache::get(const BlockId& id) {
  const std::string path = settings_.directory + "/" + path_of(id);
  auto file = os::read_file(path, kFileBytesMax);
  if (!file) {
    ++misses_;
    if (file.error().kind == Kind::not_found) return std::optional<std::string>();
    return std::move(file).error();
  }
  const auto content = decode_block(id, *file);
  if (!content) {
    ++broken_;
    ++misses_;
    ::unlink(path.c_str());
    return std::optional<std::string>();
  }
  ++hits_;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  const size_t header = file->size() - content->size();
  file->erase(0, header);
  return std::optional(*std::move(file));
}

Result<void> BlockCache::put(const BlockId& id, std::string_view content) {
  const auto free = os::free_bytes(settings_.directory);
  if (settings_.bytes_max < content.size() ||
      (free && *free < saturating_add(settings_.free_bytes_min, uint64_t(content.size()))))
    return {};
  const std::string path = settings_.directory + "/" + path_of(id);
  const std::string folder = path.substr(0, path.rfind('/'));
  TRY(os::make_directories(folder, 0700));
  const std::string neighbour = folder + "/" + std::string(os::kNeighbourPrefix) +
                                std::to_string(::getpid()) + "-" + std::to_string(++neighbours_);
  // Not durable: what a power loss takes is noticed by its checksum.
  auto written = os::write_file(neighbour, encode_block(id, content), 0600);
  if (written && ::rename(neighbour.c_str(), path.c_str()) != 0)
    written = from_errno("renaming " + neighbour);
  if (!written) {
    ::unlink(neighbour.c_str());
    return written;
  }
  ++kept_;
  const MutexLock lock(mutex_);
  written_since_trim_ += content.size();
  if (written_since_trim_ < settings_.bytes_max / kTrimsPerLimit) return {};
  return trim_locked();
}

Result<void> BlockCache::trim() {
  const MutexLock lock(mutex_);
  return trim_locked();
}

Result<void> BlockCache::trim_locked() {
  written_since_trim_ = 0;
  // One process at a time; another one's removal serves this one too.
  const auto only_one = os::FileLock::take(settings_.directory + "/lock");
  if (!only_one) return {};
  auto found = TRY(find_blocks(settings_.directory));
  uint64_t bytes = 0;
  for (const auto& each : found) bytes = saturating_add(bytes, each.bytes);
  const uint64_t wanted = settings_.bytes_max / 100 * kUsedAfterTrim;
  if (bytes <= wanted) return {};
  std::sort(found.begin(), found.end(), earlier);
  for (const auto& each : found) {
    if (bytes <= wanted) break;
    if (::unlink(each.path.c_str()) != 0 && errno != ENOENT)
      return from_errno("removing " + each.path);
    bytes -= std::min(bytes, each.bytes);
    ++removed_;
  }
  return {};
}

CacheCounts BlockCache::counts() const { return {hits_, misses_, broken_, kept_, removed_}; }

}  // namespace trainyard::cache

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
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::cache {
namespace {

constexpr uint64_t kDiskShare = 10;      // the cache's part of a disk: 1 / 10
constexpr uint64_t kTrimsPerLimit = 32;  // trim() is due after a 32nd of the limit was written
constexpr uint64_t kUsedAfterTrim = 90;  // percent of the limit
constexpr uint64_t kFileBytesMax = kBlockBytes + kIdentityBytesMax + 64;
// A temporary file that is older than the newest file by this time was left by a crash.
constexpr time_t kNeighbourSecondsMax = 3600;

// The longest wait for another process that removes blocks or changes pins.
constexpr Duration kLockWaitMax = 60s;
constexpr size_t kStartBytes = kIdentityBytesMax + 16;

struct Found {
  timespec used;
  uint64_t bytes;
  std::string path;
  std::string name;  // the hash in hexadecimal digits
};

bool earlier(const Found& a, const Found& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

// Returns all blocks, and removes temporary files that a crash left.
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
      kind.push_back({status.st_mtim, uint64_t(status.st_blocks) * 512, path, name});
    }
  }
  for (const auto& each : neighbours)
    if (newest - each.used.tv_sec > kNeighbourSecondsMax) ::unlink(each.path.c_str());
  return found;
}

Result<std::string> read_start(const std::string& path) {
  const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return from_errno("reading " + path);
  std::string start(kStartBytes, '\0');
  const ssize_t got = ::pread(file.descriptor(), start.data(), start.size(), 0);
  if (got < 0) return from_errno("reading " + path);
  start.resize(size_t(got));
  return start;
}

// Returns true if the file contains a block.
bool is_among(const std::vector<PinnedBlock>& ordered, const std::string& name) {
  const auto bytes = from_hex(name);
  Digest hash{};
  if (!bytes || bytes->size() != hash.size()) return false;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return contains(ordered, hash);
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

BlockCache::BlockCache(CacheSettings settings, FileFaults* faults)
    : settings_(std::move(settings)),
      disk_(faults),
      pins_(settings_.directory + "/pins", settings_.bytes_max / 100 * kUsedAfterTrim, disk_) {}

Result<std::unique_ptr<BlockCache>> BlockCache::open(CacheSettings settings, FileFaults* faults) {
  // Blocks may belong to any job, so other users must not read them.
  TRY(os::make_directories(settings.directory, 0700));
  return std::unique_ptr<BlockCache>(new BlockCache(std::move(settings), faults));
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

bool BlockCache::has(const BlockId& id) const {
  return os::exists(settings_.directory + "/" + path_of(id));
}

bool BlockCache::keeps(uint64_t bytes) const {
  const auto free = os::free_bytes(settings_.directory);
  return bytes <= settings_.bytes_max &&
         (!free || *free >= saturating_add(settings_.free_bytes_min, bytes));
}

Result<FetchLock> BlockCache::fetch_lock(const BlockId& id) const {
  return FetchLock::open(settings_.directory + "/fetches", hash_of(id));
}

Result<void> BlockCache::put(const BlockId& id, std::string_view content) {
  if (!keeps(content.size())) {
    ++without_space_;
    return {};
  }
  {
    // Retries a removal that failed. The limit applies even while no block can be removed.
    const MutexLock lock(mutex_);
    TRY(trim_if_due_locked());
  }
  const std::string path = settings_.directory + "/" + path_of(id);
  const std::string folder = path.substr(0, path.rfind('/'));
  TRY(os::make_directories(folder, 0700));
  const std::string neighbour = folder + "/" + std::string(os::kNeighbourPrefix) +
                                std::to_string(::getpid()) + "-" +
                                std::to_string(++temporary_files_);
  // Not durable: the checksum detects a block that a power loss has truncated.
  auto written = write(neighbour, encode_block(id, content));
  if (written) written = disk_.rename(neighbour, path);
  if (!written) {
    ::unlink(neighbour.c_str());
    return written;
  }
  ++kept_;
  const MutexLock lock(mutex_);
  written_since_trim_ += content.size();
  return trim_if_due_locked();
}

Result<void> BlockCache::trim_if_due_locked() {
  if (written_since_trim_ < settings_.bytes_max / kTrimsPerLimit) return {};
  return trim_locked();
}

Result<void> BlockCache::write(const std::string& path, std::string_view bytes) const {
  const auto file = TRY(disk_.create(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  return disk_.write(file, bytes, path);
}

Result<void> BlockCache::trim() {
  const MutexLock lock(mutex_);
  return trim_locked();
}

Result<void> BlockCache::trim_locked() {
  // One process removes at a time, on behalf of all.
  const auto only_one = os::FileLock::take(lock_path());
  if (!only_one) {
    written_since_trim_ = 0;
    return {};
  }
  const auto pinned = all_blocks(TRY(pins_.read()));
  written_since_trim_ = 0;
  auto found = TRY(find_blocks(settings_.directory));
  uint64_t bytes = 0;
  for (const auto& each : found) bytes = saturating_add(bytes, each.bytes);
  const uint64_t wanted = settings_.bytes_max / 100 * kUsedAfterTrim;
  if (bytes <= wanted) return {};
  std::sort(found.begin(), found.end(), earlier);
  for (const auto& each : found) {
    if (bytes <= wanted) break;
    if (is_among(pinned, each.name)) continue;
    if (::unlink(each.path.c_str()) != 0 && errno != ENOENT)
      return from_errno("removing " + each.path);
    bytes -= std::min(bytes, each.bytes);
    ++removed_;
  }
  return {};
}

Result<std::unique_ptr<HeldPin>> BlockCache::hold(const std::string& name,
                                                  std::vector<PinnedBlock> wanted,
                                                  uint64_t own_bytes_max) {
  const auto lock = TRY(os::FileLock::take_within(lock_path(), kLockWaitMax));
  return pins_.hold(name, std::move(wanted), own_bytes_max);
}

Result<void> BlockCache::keep_pinned(Pin pin) {
  const auto lock = TRY(os::FileLock::take_within(lock_path(), kLockWaitMax));
  return pins_.keep(std::move(pin));
}

Result<bool> BlockCache::unpin(const std::string& name) {
  const auto lock = TRY(os::FileLock::take_within(lock_path(), kLockWaitMax));
  return pins_.remove(name);
}

Result<std::vector<FoundPin>> BlockCache::pins() {
  const auto lock = TRY(os::FileLock::take_within(lock_path(), kLockWaitMax));
  return pins_.read();
}

Result<void> BlockCache::visit(const std::function<void(const CachedBlock&)>& visitor) const {
  for (const auto& each : TRY(find_blocks(settings_.directory))) {
    const auto start = read_start(each.path);
    auto id = start ? declared_id(*start) : Result<BlockId>(start.error());
    // Skips a block that was removed meanwhile, or is broken: its next reader detects that.
    if (!id || to_hex(trainyard::bytes_of(hash_of(*id))) != each.name) continue;
    const auto hash = hash_of(*id);
    visitor({*std::move(id), hash, each.bytes,
             from_milliseconds(int64_t(each.used.tv_sec) * 1000 + each.used.tv_nsec / 1'000'000)});
  }
  return {};
}

Result<DroppedBlocks> BlockCache::drop(const std::function<bool(const BlockId&)>& which) {
  const auto lock = TRY(os::FileLock::take_within(lock_path(), kLockWaitMax));
  auto pins = TRY(pins_.read());
  std::erase_if(pins, [](const auto& each) { return !each.held; });
  const auto held = all_blocks(pins);
  DroppedBlocks dropped;
  Result<void> removed;
  TRY(visit([&](const CachedBlock& block) {
    if (!removed || !which(block.id)) return;
    if (contains(held, block.hash)) {
      ++dropped.held;
      return;
    }
    removed = disk_.remove(settings_.directory + "/" + path_of(block.hash));
    if (removed) ++dropped.removed, dropped.bytes += block.bytes;
  }));
  TRY(removed);
  return dropped;
}

CacheCounts BlockCache::counts() const {
  return {hits_, misses_, broken_, kept_, removed_, without_space_};
}

}  // namespace trainyard::cache

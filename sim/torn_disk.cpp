#include "sim/torn_disk.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.hpp"

namespace trainyard::sim {
namespace {

constexpr uint64_t kSectorBytes = 512;
constexpr const char* kName = "torn-disk";

}  // namespace

struct TornDisk::File {
  std::string now;     // as programs see it
  std::string synced;  // as of the last sync
  std::vector<FileChange> unsynced;
  bool entry_synced = false;  // its directory entry is durable

  // Locks between connections: the level of each, 0 to SQLITE_LOCK_EXCLUSIVE.
  std::map<const void*, int> locks;
  std::vector<std::unique_ptr<char[]>> regions;  // the regions of shared memory (xShmMap)
  std::map<const void*, std::array<int, SQLITE_SHM_NLOCK>>
      shared_locks;  // 0, SQLITE_SHM_SHARED or _EXCLUSIVE
};

struct TornDisk::Hooks {
  TornDisk* disk = nullptr;
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs ours{};

  // An open file of SQLite.
  struct Open {
    sqlite3_file base;
    TornDisk* disk;
    std::shared_ptr<File> file;  // shared with the disk
    std::string* remove_at_end;  // its path, to be removed on close; nullptr: the file stays
  };
  static Open& of(sqlite3_file* file) { return *reinterpret_cast<Open*>(file); }
  static TornDisk& of(sqlite3_vfs* vfs) { return *static_cast<Hooks*>(vfs->pAppData)->disk; }

  static int close(sqlite3_file* file);
  static int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 at);
  static int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at);
  static int truncate(sqlite3_file* file, sqlite3_int64 bytes);
  static int sync(sqlite3_file* file, int flags);
  static int size(sqlite3_file* file, sqlite3_int64* bytes);
  static int lock(sqlite3_file* file, int how);
  static int unlock(sqlite3_file* file, int how);
  static int reserved(sqlite3_file* file, int* answer);
  static int map(sqlite3_file* file, int region, int bytes, int extend, void volatile** at);
  static int lock_shared(sqlite3_file* file, int first, int count, int flags);
  static int unmap(sqlite3_file* file, int remove);
  static int open(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
                  int* flags_out);
  static int remove(sqlite3_vfs* vfs, const char* path, int sync_directory);
  static int access(sqlite3_vfs* vfs, const char* path, int flags, int* answer);
  static int full_path(sqlite3_vfs* vfs, const char* path, int bytes, char* to);
};

namespace {

int control_file(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return int(kSectorBytes); }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
void barrier(sqlite3_file*) {}

}  // namespace

void TornDisk::step() {
  if (steps_left_ > 0 && --steps_left_ == 0) lose_power();
}

void TornDisk::lose_power() {
  if (std::exchange(power_lost_, true)) return;
  world_.trace("disk", "loses power");
  survivors_.clear();
  for (const auto& [path, file] : files_)
    if (file->entry_synced || world_.random.chance(2))
      survivors_[path] = survivor_of(world_, file->synced, file->unsynced);
}

void TornDisk::power_on() {
  files_.clear();
  for (auto& [path, content] : survivors_) {
    auto file = std::make_shared<File>();
    file->now = content;
    file->synced = std::move(content);
    file->entry_synced = true;
    files_[path] = std::move(file);
  }
  survivors_.clear();
  power_lost_ = false;
  steps_left_ = 0;
}

int TornDisk::Hooks::close(sqlite3_file* file) {
  Open& open = of(file);
  open.file->locks.erase(file);
  open.file->shared_locks.erase(file);
  if (open.remove_at_end) open.disk->files_.erase(*open.remove_at_end);
  delete open.remove_at_end;
  open.~Open();
  return SQLITE_OK;
}

int TornDisk::Hooks::read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 at) {
  const std::string& content = of(file).file->now;
  const size_t there =
      uint64_t(at) >= content.size() ? 0 : std::min(size_t(bytes), content.size() - size_t(at));
  std::memcpy(to, content.data() + (there ? at : 0), there);
  if (there == size_t(bytes)) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, size_t(bytes) - there);
  return SQLITE_IOERR_SHORT_READ;
}

int TornDisk::Hooks::write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
  Open& open = of(file);
  FileChange change{uint64_t(at), std::string(static_cast<const char*>(from), size_t(bytes))};
  apply_change(change, open.file->now);
  open.file->unsynced.push_back(std::move(change));
  open.disk->step();
  return SQLITE_OK;
}

int TornDisk::Hooks::truncate(sqlite3_file* file, sqlite3_int64 bytes) {
  Open& open = of(file);
  FileChange change{uint64_t(bytes), "", true};
  apply_change(change, open.file->now);
  open.file->unsynced.push_back(std::move(change));
  open.disk->step();
  return SQLITE_OK;
}

int TornDisk::Hooks::sync(sqlite3_file* file, int) {
  Open& open = of(file);
  open.disk->step();  // may lose power before the sync
  for (const FileChange& change : open.file->unsynced) apply_change(change, open.file->synced);
  open.file->unsynced.clear();
  open.file->entry_synced = true;
  return SQLITE_OK;
}

int TornDisk::Hooks::size(sqlite3_file* file, sqlite3_int64* bytes) {
  *bytes = sqlite3_int64(of(file).file->now.size());
  return SQLITE_OK;
}

// Implements the rules of sqlite.org/lockingv3.html, among the connections of one thread.
int TornDisk::Hooks::lock(sqlite3_file* file, int how) {
  auto& locks = of(file).file->locks;
  int& own = locks[file];
  if (own >= how) return SQLITE_OK;
  for (const auto& [other, level] : locks) {
    if (other == file) continue;
    const bool free = how == SQLITE_LOCK_SHARED      ? level < SQLITE_LOCK_PENDING
                      : how == SQLITE_LOCK_EXCLUSIVE ? level == SQLITE_LOCK_NONE
                                                     : level < SQLITE_LOCK_RESERVED;
    if (!free) return SQLITE_BUSY;
  }
  own = how;
  return SQLITE_OK;
}

int TornDisk::Hooks::unlock(sqlite3_file* file, int how) {
  int& own = of(file).file->locks[file];
  own = std::min(own, how);
  return SQLITE_OK;
}

int TornDisk::Hooks::reserved(sqlite3_file* file, int* answer) {
  const auto& locks = of(file).file->locks;
  *answer = std::any_of(locks.begin(), locks.end(),
                        [](const auto& each) { return each.second >= SQLITE_LOCK_RESERVED; });
  return SQLITE_OK;
}

int TornDisk::Hooks::map(sqlite3_file* file, int region, int bytes, int extend,
                         void volatile** at) {
  auto& regions = of(file).file->regions;
  *at = nullptr;
  while (extend && regions.size() <= size_t(region))
    regions.push_back(std::make_unique<char[]>(size_t(bytes)));
  if (regions.size() > size_t(region)) *at = regions[size_t(region)].get();
  return SQLITE_OK;
}

int TornDisk::Hooks::lock_shared(sqlite3_file* file, int first, int count, int flags) {
  auto& all = of(file).file->shared_locks;
  auto& own = all[file];
  const int kind = flags & SQLITE_SHM_SHARED ? SQLITE_SHM_SHARED : SQLITE_SHM_EXCLUSIVE;
  for (int slot = first; slot < first + count && (flags & SQLITE_SHM_LOCK); ++slot)
    for (const auto& [other, slots] : all)
      if (other != file && slots[size_t(slot)] != 0 &&
          (kind == SQLITE_SHM_EXCLUSIVE || slots[size_t(slot)] == SQLITE_SHM_EXCLUSIVE))
        return SQLITE_BUSY;
  for (int slot = first; slot < first + count; ++slot)
    own[size_t(slot)] = flags & SQLITE_SHM_LOCK ? kind : 0;
  return SQLITE_OK;
}

int TornDisk::Hooks::unmap(sqlite3_file* file, int remove) {
  of(file).file->shared_locks.erase(file);
  if (remove) of(file).file->regions.clear();
  return SQLITE_OK;
}

int TornDisk::Hooks::open(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
                          int* flags_out) {
  static constexpr sqlite3_io_methods kMethods = {
      2,      close,    read,         write,       truncate,        sync, size,        lock,
      unlock, reserved, control_file, sector_size, characteristics, map,  lock_shared, barrier,
      unmap,  nullptr,  nullptr};
  TornDisk& disk = of(vfs);
  file->pMethods = nullptr;
  std::shared_ptr<File> opened;
  if (path == nullptr) {
    opened = std::make_shared<File>();
  } else if (const auto found = disk.files_.find(path); found != disk.files_.end()) {
    opened = found->second;
  } else if (flags & SQLITE_OPEN_CREATE) {
    opened = disk.files_[path] = std::make_shared<File>();
  } else {
    return SQLITE_CANTOPEN;
  }
  const bool removes = path != nullptr && (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  auto* open =
      new (file) Open{{}, &disk, std::move(opened), removes ? new std::string(path) : nullptr};
  open->base.pMethods = &kMethods;
  if (flags_out) *flags_out = flags;
  return SQLITE_OK;
}

// Behaves like a disk that syncs directory entries at once.
int TornDisk::Hooks::remove(sqlite3_vfs* vfs, const char* path, int) {
  return of(vfs).files_.erase(path) > 0 ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

int TornDisk::Hooks::access(sqlite3_vfs* vfs, const char* path, int, int* answer) {
  *answer = of(vfs).files_.contains(path);
  return SQLITE_OK;
}

int TornDisk::Hooks::full_path(sqlite3_vfs*, const char* path, int bytes, char* to) {
  sqlite3_snprintf(bytes, to, "%s", path);
  return SQLITE_OK;
}

TornDisk::TornDisk(World& world) : world_(world), hooks_(std::make_unique<Hooks>()) {
  hooks_->disk = this;
  hooks_->real = sqlite3_vfs_find(nullptr);
  CHECK(hooks_->real, "SQLite has a file system of its own");
  // The default clock and random numbers, on which the ledger does not depend.
  hooks_->ours = *hooks_->real;
  sqlite3_vfs& ours = hooks_->ours;
  ours.iVersion = 2;
  ours.szOsFile = int(sizeof(Hooks::Open));
  ours.pNext = nullptr;
  ours.zName = kName;
  ours.pAppData = hooks_.get();
  ours.xOpen = Hooks::open;
  ours.xDelete = Hooks::remove;
  ours.xAccess = Hooks::access;
  ours.xFullPathname = Hooks::full_path;
  CHECK(sqlite3_vfs_register(&ours, 1) == SQLITE_OK, "the name is taken once");
}

TornDisk::~TornDisk() {
  sqlite3_vfs_unregister(&hooks_->ours);
  sqlite3_vfs_register(hooks_->real, 1);
}

}  // namespace trainyard::sim

#include "sqlite/file_watch.hpp"

#include <sqlite3.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "base/check.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::sqlite {

// A VFS of SQLite (sqlite.org/vfs.html) that forwards every call to the default VFS. The memory of
// a file starts with a WatchedFile, which is followed by the file of the default VFS.
struct FileWatch::Hooks {
  FileWatch* watch = nullptr;
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs ours{};

  int fault(FileStep step, const std::string& path, size_t bytes, FileFault& fault) const {
    fault = watch->faults_ ? watch->faults_->before(step, path, bytes) : FileFault();
    return fault.error_number;
  }
  void sync_failed(const std::string& path) const {
    const MutexLock lock(watch->mutex_);
    if (!watch->failed_sync_) watch->failed_sync_ = path;
  }
  static Hooks& of(sqlite3_vfs* vfs) { return *static_cast<Hooks*>(vfs->pAppData); }
};

namespace {

struct WatchedFile {
  sqlite3_file base;
  const FileWatch::Hooks* hooks;
  const char* path;  // owned by SQLite while the file is open; nullptr: a temporary file
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  std::string name() const { return path ? path : ""; }
};

WatchedFile& watched(sqlite3_file* file) { return *reinterpret_cast<WatchedFile*>(file); }
sqlite3_file* real_of(sqlite3_file* file) { return watched(file).real(); }
const sqlite3_io_methods& methods_of(sqlite3_file* file) { return *real_of(file)->pMethods; }

int close_file(sqlite3_file* file) { return methods_of(file).xClose(real_of(file)); }
int read_file(sqlite3_file* file, void* to, int bytes, sqlite3_int64 at) {
  return methods_of(file).xRead(real_of(file), to, bytes, at);
}

int write_file(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
  FileFault fault;
  if (watched(file).hooks->fault(FileStep::write, watched(file).name(), size_t(bytes), fault) !=
      0) {
    if (fault.bytes_written > 0)
      static_cast<void>(methods_of(file).xWrite(real_of(file), from, int(fault.bytes_written), at));
    return fault.error_number == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
  }
  return methods_of(file).xWrite(real_of(file), from, bytes, at);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 bytes) {
  FileFault fault;
  if (watched(file).hooks->fault(FileStep::truncate, watched(file).name(), 0, fault) != 0)
    return SQLITE_IOERR_TRUNCATE;
  return methods_of(file).xTruncate(real_of(file), bytes);
}

int sync_file(sqlite3_file* file, int flags) {
  const WatchedFile& ours = watched(file);
  FileFault fault;
  const int done = ours.hooks->fault(FileStep::sync, ours.name(), 0, fault) != 0
                       ? SQLITE_IOERR_FSYNC
                       : methods_of(file).xSync(real_of(file), flags);
  if (done != SQLITE_OK) ours.hooks->sync_failed(ours.name());
  return done;
}

int file_size(sqlite3_file* file, sqlite3_int64* bytes) {
  return methods_of(file).xFileSize(real_of(file), bytes);
}
int lock_file(sqlite3_file* file, int how) { return methods_of(file).xLock(real_of(file), how); }
int unlock_file(sqlite3_file* file, int how) {
  return methods_of(file).xUnlock(real_of(file), how);
}
int check_lock(sqlite3_file* file, int* locked) {
  return methods_of(file).xCheckReservedLock(real_of(file), locked);
}
int control_file(sqlite3_file* file, int what, void* with) {
  return methods_of(file).xFileControl(real_of(file), what, with);
}
int sector_size(sqlite3_file* file) { return methods_of(file).xSectorSize(real_of(file)); }
int characteristics(sqlite3_file* file) {
  return methods_of(file).xDeviceCharacteristics(real_of(file));
}
int map_shared(sqlite3_file* file, int page, int bytes, int extend, void volatile** at) {
  return methods_of(file).xShmMap(real_of(file), page, bytes, extend, at);
}
int lock_shared(sqlite3_file* file, int first, int count, int flags) {
  return methods_of(file).xShmLock(real_of(file), first, count, flags);
}
void shared_barrier(sqlite3_file* file) { methods_of(file).xShmBarrier(real_of(file)); }
int unmap_shared(sqlite3_file* file, int remove) {
  return methods_of(file).xShmUnmap(real_of(file), remove);
}

// Version 2 has no memory mapping of the database, which would bypass these calls.
constexpr sqlite3_io_methods kMethods = {2,
                                         close_file,
                                         read_file,
                                         write_file,
                                         truncate_file,
                                         sync_file,
                                         file_size,
                                         lock_file,
                                         unlock_file,
                                         check_lock,
                                         control_file,
                                         sector_size,
                                         characteristics,
                                         map_shared,
                                         lock_shared,
                                         shared_barrier,
                                         unmap_shared,
                                         nullptr,
                                         nullptr};

int open_file(sqlite3_vfs* vfs, sqlite3_filename path, sqlite3_file* file, int flags,
              int* flags_out) {
  const auto& hooks = FileWatch::Hooks::of(vfs);
  auto* ours = new (file) WatchedFile{{nullptr}, &hooks, path};
  const int done = hooks.real->xOpen(hooks.real, path, ours->real(), flags, flags_out);
  if (ours->real()->pMethods != nullptr) ours->base.pMethods = &kMethods;
  return done;
}

int remove_file(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  const auto& hooks = FileWatch::Hooks::of(vfs);
  FileFault fault;
  if (hooks.fault(FileStep::remove, path, 0, fault) != 0) return SQLITE_IOERR_DELETE;
  return hooks.real->xDelete(hooks.real, path, sync_directory);
}

int check_access(sqlite3_vfs* vfs, const char* path, int flags, int* answer) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xAccess(real, path, flags, answer);
}
int full_path(sqlite3_vfs* vfs, const char* path, int bytes, char* to) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xFullPathname(real, path, bytes, to);
}
int random_bytes(sqlite3_vfs* vfs, int bytes, char* to) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xRandomness(real, bytes, to);
}
int pause(sqlite3_vfs* vfs, int microseconds) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xSleep(real, microseconds);
}
int current_time(sqlite3_vfs* vfs, double* days) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xCurrentTime(real, days);
}
int last_error(sqlite3_vfs* vfs, int bytes, char* to) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xGetLastError ? real->xGetLastError(real, bytes, to) : 0;
}
int current_time_int(sqlite3_vfs* vfs, sqlite3_int64* milliseconds) {
  sqlite3_vfs* real = FileWatch::Hooks::of(vfs).real;
  return real->xCurrentTimeInt64(real, milliseconds);
}

}  // namespace

FileWatch::FileWatch(FileFaults* faults) : faults_(faults), hooks_(std::make_unique<Hooks>()) {
  static std::atomic<uint64_t> watches = 0;
  name_ = "trainyard-" + std::to_string(++watches);
  hooks_->watch = this;
  hooks_->real = sqlite3_vfs_find(nullptr);
  CHECK(hooks_->real != nullptr && hooks_->real->iVersion >= 2, "SQLite has a default VFS");
  sqlite3_vfs& ours = hooks_->ours;
  ours.iVersion = 2;
  ours.szOsFile = int(sizeof(WatchedFile)) + hooks_->real->szOsFile;
  ours.mxPathname = hooks_->real->mxPathname;
  ours.zName = name_.c_str();
  ours.pAppData = hooks_.get();
  ours.xOpen = open_file;
  ours.xDelete = remove_file;
  ours.xAccess = check_access;
  ours.xFullPathname = full_path;
  ours.xRandomness = random_bytes;
  ours.xSleep = pause;
  ours.xCurrentTime = current_time;
  ours.xGetLastError = last_error;
  ours.xCurrentTimeInt64 = current_time_int;
  CHECK(sqlite3_vfs_register(&ours, 0) == SQLITE_OK, "the name is taken once");
}

FileWatch::~FileWatch() { sqlite3_vfs_unregister(&hooks_->ours); }

std::optional<std::string> FileWatch::failed_sync() const {
  const MutexLock lock(mutex_);
  return failed_sync_;
}

}  // namespace trainyard::sqlite

#include "objects/directory/bucket_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/thread_safety.hpp"
#include "objects/directory/bucket_file.hpp"
#include "objects/directory/key_path.hpp"
#include "objects/directory/record.hpp"
#include "objects/names.hpp"

namespace trainyard::objects {
namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Result<os::File> open_directory_file(const std::string& path) {
  os::File directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return from_errno("opening " + path);
  return directory;
}

}  // namespace

std::string BucketTree::path_of_key(const std::string& key) const {
  return keys_path() + "/" + path_of(key);
}

BucketInfo BucketTree::described() const {
  BucketInfo info = info_;
  MutexLock lock(tags_mutex_);
  info.tags = tags_;
  return info;
}

Result<void> BucketTree::set_tags(const std::map<std::string, std::string>& tags) {
  BucketInfo info = info_;
  info.tags = tags;
  MutexLock lock(tags_mutex_);
  auto written = disk_.write_file_durably(path_ + "/bucket", encode_bucket(info));
  if (!written && written.error().kind == Kind::not_found) return no_bucket(info_.name);
  TRY(written);
  tags_ = tags;
  return ok();
}

Result<void> BucketTree::make_parents(const std::string& path) {
  const size_t root = keys_path().size();
  for (size_t slash = path.find('/', root + 1); slash != path.npos;
       slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    if (const int failed = disk_.fault(FileStep::make_directory, directory))
      return from_errno("making " + directory, failed);
    if (mkdir(directory.c_str(), 0700) == 0) {
      unsynced_.try_emplace(directory, 0);
      names_.changed(parent_of(directory));
    } else if (errno != EEXIST) {
      return from_errno("making " + directory);
    }
  }
  return ok();
}

// Opens the directories to sync so that the entry `path` is durable: its parent, and the parents of
// those directories on the path whose own entries are not durable.
Result<std::vector<BucketTree::ToSync>> BucketTree::open_to_sync(const std::string& path) {
  std::vector<ToSync> all;
  const std::string root = keys_path();
  std::string entry = path;
  do {
    const std::string directory = parent_of(entry);
    const auto unsynced = unsynced_.find(entry);
    if (entry == path || unsynced != unsynced_.end()) {
      auto file = TRY(open_directory_file(directory));
      all.push_back({directory, std::move(file), {}});
      if (unsynced != unsynced_.end()) {
        all.back().made.push_back(entry);
        ++unsynced->second;
      }
    }
    entry = directory;
  } while (entry.size() > root.size() && !unsynced_.empty());
  return all;
}

Result<void> BucketTree::sync(std::vector<ToSync> directories) {
  for (const auto& one : directories) TRY(disk_.sync(one.directory, one.path));
  MutexLock lock(mutex_);
  for (const auto& one : directories) {
    for (const auto& made : one.made) {
      const auto found = unsynced_.find(made);
      if (found != unsynced_.end() && --found->second <= 0) unsynced_.erase(found);
    }
  }
  return ok();
}

Result<os::File> BucketTree::install(const std::string& file, const std::string& key,
                                     bool only_if_absent, const std::string& only_if_etag) {
  const std::string path = path_of_key(key);
  std::vector<ToSync> directories;
  os::File before;
  {
    MutexLock lock(mutex_);
    if (retired_) return no_bucket(info_.name);
    if (only_if_absent && access(path.c_str(), F_OK) == 0) return key_exists(info_.name, key);
    before = os::File(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!only_if_etag.empty()) {
      if (!before) return no_key(info_.name, key);
      TRY(check_etag(info_.name, TRY(read_record(before.descriptor(), path)).info, only_if_etag));
    }
    if (auto renamed = disk_.rename(file, path); !renamed) {
      if (renamed.error().kind != Kind::not_found) return std::move(renamed).error();
      TRY(make_parents(path));
      TRY(disk_.rename(file, path));
    }
    names_.changed(parent_of(path));
    directories = TRY(open_to_sync(path));
  }
  TRY(sync(std::move(directories)));
  return before;
}

Result<bool> BucketTree::replace(const std::string& file, const std::string& key,
                                 const os::File& present) {
  const std::string path = path_of_key(key);
  std::vector<ToSync> directories;
  {
    MutexLock lock(mutex_);
    struct stat named {
    }, opened{};
    if (retired_ || lstat(path.c_str(), &named) != 0) return false;
    if (fstat(present.descriptor(), &opened) != 0) return from_errno("reading " + path);
    if (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) return false;
    TRY(disk_.rename(file, path));
    directories = TRY(open_to_sync(path));
  }
  TRY(sync(std::move(directories)));
  return true;
}

Result<os::File> BucketTree::remove(const std::string& key, const ObjectInfo* unchanged) {
  const std::string root = keys_path();
  std::string entry = path_of_key(key);
  std::vector<ToSync> directories;
  os::File before;
  {
    MutexLock lock(mutex_);
    if (retired_) return no_bucket(info_.name);
    before = os::File(open(entry.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!before && errno == ENOENT) return before;
    if (unchanged)
      TRY(check_unchanged(info_.name, TRY(read_record(before.descriptor(), entry)).info,
                          *unchanged));
    TRY(disk_.remove(entry));
    names_.changed(parent_of(entry));
    // Empty directories are removed too, so that a tree never holds more of them than its keys
    // need.
    while (parent_of(entry) != root && rmdir(parent_of(entry).c_str()) == 0) {
      entry = parent_of(entry);
      unsynced_.erase(entry);
      names_.changed(entry);
      names_.changed(parent_of(entry));
    }
    directories = TRY(open_to_sync(entry));
  }
  TRY(sync(std::move(directories)));
  return before;
}

Result<void> BucketTree::retire(const std::string& path) {
  MutexLock lock(mutex_);
  if (retired_) return no_bucket(info_.name);
  if (TRY(holds_object(keys_path()))) return bucket_not_empty(info_.name);
  if (rename(path_.c_str(), path.c_str()) != 0) return from_errno("renaming " + path_);
  retired_ = true;
  return ok();
}

}  // namespace trainyard::objects

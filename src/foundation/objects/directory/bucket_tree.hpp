// BucketTree stores one bucket on disk: its tree of keys, and changes of it that must be atomic and
// durable.
//
// Names change while the bucket's mutex is held (a few system calls, no wait for the disk). The
// affected directories are synced after it is released, so puts sync in parallel.
//
// Threads: callable from anywhere. Shared by the table of buckets and by operations in the bucket;
// the last one frees it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "objects/directory/names.hpp"
#include "objects/objects.hpp"
#include "os/disk.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

class BucketTree {
 public:
  // Lifetime: `disk` outlives the tree.
  BucketTree(const BucketInfo& info, std::string path, const os::Disk& disk)
      : info_{info.name, info.region, info.created},
        tags_(info.tags),
        path_(std::move(path)),
        disk_(disk) {}

  const BucketInfo& info() const { return info_; }  // without tags
  BucketInfo described() const;                     // with tags
  // Replaces the tags. Returns once they are durable.
  Result<void> set_tags(const std::map<std::string, std::string>& tags);
  std::string keys_path() const { return path_ + "/keys"; }
  std::string uploads_path() const { return path_ + "/uploads"; }
  // Returns the directory with a subdirectory, named like the upload, for each object that is a
  // list of parts.
  std::string parts_path() const { return path_ + "/parts"; }
  std::string path_of_key(const std::string& key) const;
  NamesCache& names() { return names_; }

  // Moves a complete, synced file to the path of the key. Returns once that is durable, with the
  // replaced file, opened; an empty File if there was none. `only_if_etag`: as in PutOptions.
  Result<os::File> install(const std::string& file, const std::string& key, bool only_if_absent,
                           const std::string& only_if_etag);
  // Moves a file to the path of the key as install() does, but only if the file there is still
  // `present`. Returns false, and changes nothing, if it is another one.
  Result<bool> replace(const std::string& file, const std::string& key, const os::File& present);
  // Removes a key; does nothing if it is absent. Returns once that is durable, with the removed
  // file, opened. With `unchanged`, fails with conflict if the object has another ETag or time of
  // modification.
  Result<os::File> remove(const std::string& key, const ObjectInfo* unchanged = nullptr);
  // Moves the whole bucket to `path`, if it contains no object. After that every change of it
  // fails.
  Result<void> retire(const std::string& path);

 private:
  // A directory that was opened to be synced, and the new directories whose entries in it the sync
  // makes durable.
  struct ToSync {
    std::string path;
    os::File directory;
    std::vector<std::string> made;
  };
  Result<void> make_parents(const std::string& path) REQUIRES(mutex_);
  Result<std::vector<ToSync>> open_to_sync(const std::string& path) REQUIRES(mutex_);
  Result<void> sync(std::vector<ToSync> directories);

  const BucketInfo info_;
  mutable Mutex tags_mutex_;  // held while the file is written, so that it has the latest tags
  std::map<std::string, std::string> tags_ GUARDED_BY(tags_mutex_);
  const std::string path_;
  const os::Disk& disk_;
  NamesCache names_;
  Mutex mutex_;
  bool retired_ GUARDED_BY(mutex_) = false;
  // Directories whose entry in their parent may not be durable yet, with the number of puts that
  // are about to sync it. Every put below such a directory must sync the entry too, even if another
  // put made the directory. After a failed sync the directory stays here, so the next put tries
  // again.
  std::map<std::string, int> unsynced_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::objects

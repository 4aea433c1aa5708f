// Stores one bucket on disk: its key tree, and the changes to it that must be atomic and durable.
//
// Names change under the bucket's mutex (a few system calls, no waiting for the disk); the affected
// directories are synced after it is released, so puts sync in parallel.
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
  BucketInfo described() const;
  // Returns when that is durable.
  Result<void> set_tags(const std::map<std::string, std::string>& tags);
  std::string keys_path() const { return path_ + "/keys"; }
  std::string uploads_path() const { return path_ + "/uploads"; }
  // A directory for each object that is a list of parts, named like its upload.
  std::string parts_path() const { return path_ + "/parts"; }
  std::string path_of_key(const std::string& key) const;
  NamesCache& names() { return names_; }

  // Moves a finished, synced file to the key's path. Returns when that is durable, with the
  // replaced file, opened; none if there was none. `only_if_etag`: as in PutOptions.
  Result<os::File> install(const std::string& file, const std::string& key, bool only_if_absent,
                           const std::string& only_if_etag);
  // Moves a file to the key's path as install() does, if its file is still `present`. Returns
  // whether it was.
  Result<bool> replace(const std::string& file, const std::string& key, const os::File& present);
  // Removes a key; harmless when absent. Returns when that is durable, with the removed file.
  // `unchanged`: only if the object still has this ETag and time of modification; else conflict.
  Result<os::File> remove(const std::string& key, const ObjectInfo* unchanged = nullptr);
  // Moves the whole bucket to `path`, if it holds no object; from then on every change of it fails.
  Result<void> retire(const std::string& path);

 private:
  // A directory that was opened to be synced, and the new ones whose entries the sync makes
  // durable.
  struct ToSync {
    std::string path;
    os::File directory;
    std::vector<std::string> made;
  };
  Result<void> make_parents(const std::string& path) REQUIRES(mu_);
  Result<std::vector<ToSync>> open_to_sync(const std::string& path) REQUIRES(mu_);
  Result<void> sync(std::vector<ToSync> directories);

  const BucketInfo info_;
  mutable Mutex tags_mu_;  // held while they are written, so that the file has the last ones
  std::map<std::string, std::string> tags_ GUARDED_BY(tags_mu_);
  const std::string path_;
  const os::Disk& disk_;
  NamesCache names_;
  Mutex mu_;
  bool retired_ GUARDED_BY(mu_) = false;
  // Directories whose own entry may not be durable yet, with the number of puts that will sync it.
  // A put below such a directory must sync the entry too, whichever put made it. After a failed
  // sync a directory stays here forever, for the next put to try.
  std::map<std::string, int> unsynced_ GUARDED_BY(mu_);
};

}  // namespace trainyard::objects

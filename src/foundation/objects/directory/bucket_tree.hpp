// One bucket on disk: its key tree, and the changes to it that must be atomic and durable.
//
// Changes of names happen under the bucket's mutex (a few system calls, no waiting for the disk); the
// directories that they touched are synced after it is released, so puts sync side by side.
//
// Threads: callable from anywhere. Shared by the table of buckets and by what is under way in the bucket;
// whoever is last frees it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "objects/directory/names.hpp"
#include "objects/objects.hpp"
#include "os/disk.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

class BucketTree {
 public:
  // Lifetime: `disk` outlives the tree.
  BucketTree(BucketInfo info, std::string path, const os::Disk& disk)
      : info_(std::move(info)), path_(std::move(path)), disk_(disk) {}

  const BucketInfo& info() const { return info_; }
  std::string keys_path() const { return path_ + "/keys"; }
  std::string uploads_path() const { return path_ + "/uploads"; }
  // Of objects that are lists of parts, a directory each, named like the upload that it was.
  std::string parts_path() const { return path_ + "/parts"; }
  std::string path_of_key(const std::string& key) const;
  NamesCache& names() { return names_; }

  // Moves a finished, synced file to the key's place. Returns when that is durable, with the file that stood there
  // before, opened; none when there was none.
  Result<os::File> install(const std::string& file, const std::string& key, bool only_if_absent);
  // Harmless when there is none. Returns when that is durable, with the file that stood there.
  Result<os::File> remove(const std::string& key);
  // Moves the whole bucket to `path`, if it holds no object; from then on every change of it fails.
  Result<void> retire(const std::string& path);

 private:
  // A directory that was opened to be synced, and those just made whose entries that will make durable.
  struct ToSync {
    std::string path;
    os::File directory;
    std::vector<std::string> made;
  };
  Result<void> make_parents(const std::string& path);
  Result<std::vector<ToSync>> open_to_sync(const std::string& path);
  Result<void> sync(std::vector<ToSync> directories);

  const BucketInfo info_;
  const std::string path_;
  const os::Disk& disk_;
  NamesCache names_;
  std::mutex mu_;
  bool retired_ = false;  // guarded by mu_
  // Directories whose own entry may not be durable yet, and how many puts are about to sync it. A put below
  // such a directory must sync the entry too, whoever made it. One whose sync failed stays for ever, to be
  // tried by the next.
  std::map<std::string, int> unsynced_;  // guarded by mu_
};

}  // namespace trainyard::objects

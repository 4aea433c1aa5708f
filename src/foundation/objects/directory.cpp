#include "objects/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <tuple>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "objects/checksum.hpp"
#include "objects/directory/bucket_file.hpp"
#include "objects/directory/bucket_tree.hpp"
#include "objects/directory/format.hpp"
#include "objects/directory/held_parts.hpp"
#include "objects/directory/key_walk.hpp"
#include "objects/directory/named_locks.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/readers.hpp"
#include "objects/directory/record.hpp"
#include "objects/directory/tree_reads.hpp"
#include "objects/directory/upload_file.hpp"
#include "objects/directory/writer.hpp"
#include "objects/listing.hpp"
#include "objects/multipart.hpp"
#include "objects/names.hpp"
#include "os/disk.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

// limit of retries if an object is replaced between reading its record and opening its parts
constexpr int kReplacedTriesMax = 10;

// Shared by the table of buckets and by operations in the bucket; the last one frees it.
using Tree = std::shared_ptr<BucketTree>;

class Directory final : public Objects {
 public:
  Directory(std::string path, os::FileLock lock, Clock& clock, Random& random,
            const DirectorySettings& settings)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        clock_(clock),
        random_(random),
        check_disk_space_(settings.check_disk_space),
        disk_(settings.faults),
        use_(settings.quotas ? settings.quotas
                             : [none = std::make_shared<const StorageQuotas>()] { return none; }),
        held_parts_([this](const std::string& dropped) { move_and_discard(dropped); }) {}

  Result<void> open() {
    TRY(os::make_directories(path_ + "/buckets", 0700));
    TRY(os::remove_all(path_ + "/temporary"));
    TRY(os::make_directories(path_ + "/temporary", 0700));
    TRY(os::sync_directory(path_));
    const auto buckets = TRY(os::list_directory(path_ + "/buckets"));
    for (const auto& name : buckets) {
      const std::string bucket_path = path_ + "/buckets/" + name;
      auto info = read_bucket_file(name, bucket_path);
      if (!info) {
        // The objects of this bucket and all other buckets stay available.
        log(Level::error, "objects",
            "cannot read the file of a bucket; its region and date are unknown",
            {{"bucket", name}, {"why", info.error().message}});
        info = BucketInfo{name, "", clock_.now()};
      }
      const auto tree = std::make_shared<BucketTree>(*info, bucket_path, disk_);
      {
        const MutexLock lock(mutex_);
        trees_[name] = tree;
      }
      if (const auto counted = count_stored(*tree, use_); !counted)
        log(Level::error, "objects", "could not count all stored objects",
            {{"bucket", name}, {"why", counted.error().message}});
    }
    return ok();
  }

  // -- buckets

  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    TRY(check_bucket_name(bucket));
    TRY(check_writable());
    const BucketInfo info{bucket, region, clock_.now()};
    const std::string made = temporary_path();
    const std::string path = path_ + "/buckets/" + bucket;
    for (const char* part : {"/keys", "/uploads", "/parts"})
      TRY(disk_.make_directories(made + part, 0700));
    TRY(disk_.write_file_durably(made + "/bucket", encode_bucket(info)));
    {
      MutexLock lock(mutex_);
      if (trees_.contains(bucket)) {
        discard(made);
        return bucket_exists(bucket);
      }
      if (auto renamed = disk_.rename(made, path); !renamed) {
        discard(made);
        return renamed;
      }
      trees_[bucket] = std::make_shared<BucketTree>(info, path, disk_);
    }
    return disk_.sync_directory(path_ + "/buckets");
  }

  Result<void> delete_bucket(const std::string& bucket) override {
    TRY(check_writable());
    const std::string retired = temporary_path();
    {
      MutexLock lock(mutex_);
      const auto found = trees_.find(bucket);
      if (found == trees_.end()) return no_bucket(bucket);
      TRY(found->second->retire(retired));
      trees_.erase(found);
      use_.forget(bucket);
    }
    TRY(disk_.sync_directory(path_ + "/buckets"));
    discard(retired);
    return ok();
  }

  Result<BucketInfo> head_bucket(const std::string& bucket) override {
    return TRY(find(bucket))->described();
  }

  Result<void> set_bucket_tags(const std::string& bucket,
                               const std::map<std::string, std::string>& tags) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_tags(tags, kBucketTagsMax));
    TRY(check_writable());
    return tree->set_tags(tags);
  }

  Result<std::vector<BucketInfo>> list_buckets() override {
    MutexLock lock(mutex_);
    std::vector<BucketInfo> all;
    for (const auto& [name, tree] : trees_) all.push_back(tree->described());
    return all;
  }

  // -- objects

  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    auto reader = open_reader(bucket, key, range);
    if (reader)
      return std::unique_ptr<Reader>(new CountingReader(std::move(*reader), broken_reads_));
    if (reader.error().kind == Kind::corrupt) ++broken_reads_;
    return reader;
  }

  Result<std::unique_ptr<Reader>> open_reader(const std::string& bucket, const std::string& key,
                                              std::optional<Range> range) {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    for (int tries = 0;; ++tries) {
      auto opened = TRY(open_object(*tree, key));
      if (opened.record.parts == 0) {
        const Range resolved = TRY(resolve_range(range, opened.record.info.bytes));
        return read_file_of(std::move(opened), resolved);
      }
      PartsPaths paths{parts_of(*tree, opened.record.upload_id),
                       upload_path(*tree, opened.record.upload_id),
                       held_parts_.hold(parts_of(*tree, opened.record.upload_id))};
      // The parts are held from here on, but the object may have been replaced before.
      if (!os::exists(paths.directory) && !os::exists(paths.upload) && tries < kReplacedTriesMax)
        continue;
      return read_parts_of(std::move(opened), std::move(paths), range);
    }
  }

  Result<ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    return TRY(open_object(*tree, key)).record.info;
  }

  Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                      const PutOptions& options) override {
    const Tree tree = TRY(find(bucket));
    auto charge = use_.charge(bucket, options.owner);
    TRY(charge.add(options.bytes.value_or(0), 1));
    return make_writer(key, options, std::move(charge),
                       [this, tree, key, options](const std::string& file) -> Result<void> {
                         release_object(*tree, TRY(tree->install(file, key, options.only_if_absent,
                                                                 options.only_if_etag)));
                         return ok();
                       });
  }

  // Copies the object's file, because the tags are in the record at its end.
  Result<void> set_tags(const std::string& bucket, const std::string& key,
                        const std::map<std::string, std::string>& tags) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    TRY(check_options(PutOptions{.tags = tags}));
    TRY(check_writable());
    for (int tries = 0; tries < kReplacedTriesMax; ++tries) {
      const auto opened = TRY(open_object(*tree, key));
      auto file = TRY(TemporaryFile::make(temporary_path(), disk_));
      TRY(copy_with_tags(opened, tags, file, check_disk_space_).in("tagging " + key));
      if (!TRY(tree->replace(file.path(), key, opened.file))) continue;
      file.moved_away();
      return ok();
    }
    return unavailable("tagging " + key + ": the object is replaced too often");
  }

  Result<void> remove(const std::string& bucket, const std::string& key) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    TRY(check_writable());
    release_object(*tree, TRY(tree->remove(key)));
    return ok();
  }

  Result<void> remove_unchanged(const std::string& bucket, const std::string& key,
                                const ObjectInfo& seen) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_writable());
    release_object(*tree, TRY(tree->remove(key, &seen)));
    return ok();
  }

  Result<ListPage> list(const std::string& bucket, const ListQuery& query) override {
    const Tree tree = TRY(find(bucket));
    KeyWalk walk(tree->keys_path(), tree->names(),
                 [&](const std::string& key) -> Result<std::optional<ObjectInfo>> {
                   auto opened = open_object(*tree, key);
                   if (!opened && opened.error().kind == Kind::not_found)
                     return std::optional<ObjectInfo>();
                   if (!opened) return std::optional(describe_broken(*tree, key, opened.error()));
                   return std::optional(listed(key, opened->record.info));
                 });
    return list_page(walk, query);
  }

  // -- uploads

  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const PutOptions& options) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    TRY(check_options(options));
    TRY(ContentCheck::make(options));
    TRY(check_disk_space_());
    TRY(check_writable());
    const std::string id = random_.hex(16);
    const std::string made = temporary_path();
    const std::string path = upload_path(*tree, id);
    const auto moved = [&]() -> Result<void> {
      TRY(disk_.make_directories(made, 0700));
      TRY(disk_.write_file_durably(made + "/upload",
                                   encode_upload({{key, id, clock_.now()}, options})));
      return disk_.rename(made, path);
    }();
    if (!moved) {
      discard(made);
      if (moved.error().kind == Kind::not_found) return no_bucket(bucket);
      return moved.error();
    }
    TRY(disk_.sync_directory(tree->uploads_path()));
    return id;
  }

  Result<std::unique_ptr<Writer>> put_part(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id, uint32_t part,
                                           const PutOptions& options) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_part_number(part));
    const UploadFile upload = TRY(read_upload(*tree, key, upload_id));
    PutOptions of_part = options;
    for (const auto& [algorithm, value] : upload.options.checksums)
      of_part.checksums.try_emplace(algorithm, "");
    of_part.owner = upload.options.owner;  // the object belongs to the user who started the upload
    auto charge = use_.charge(bucket, of_part.owner);
    TRY(charge.add(options.bytes.value_or(0), 0));
    const std::string directory = upload_path(*tree, upload_id);
    return make_writer(key, of_part, std::move(charge),
                       [=, this](const std::string& file) -> Result<void> {
                         {
                           const auto lock = upload_locks_.hold(upload_id);
                           if (belongs_to_object(*tree, key, upload_id))
                             return no_upload(upload_id);
                           const std::string path = directory + "/" + part_name(part);
                           const auto before = open_recorded(path);
                           const auto renamed = disk_.rename(file, path);
                           if (!renamed && renamed.error().kind == Kind::not_found)
                             return no_upload(upload_id);
                           TRY(renamed);
                           if (before)
                             use_.remove(bucket, of_part.owner, {before->record.info.bytes, 0});
                         }
                         const auto synced = disk_.sync_directory(directory);
                         // not_found: another request has completed or aborted the upload, and has
                         // synced its changes.
                         return !synced && synced.error().kind == Kind::not_found ? ok() : synced;
                       });
  }

  // Makes the object a list of its parts, which stay separate files:
  //
  //   1. the list is written to a file and synced
  //   2. the file is renamed to the path of the key
  //   3. the directory of the upload is renamed to parts/ID
  //
  // The second step commits. After a crash between steps 2 and 3 the parts are still in the
  // directory of the upload: readers search there too, no request changes them (belongs_to_object),
  // and clean_up() moves them.
  Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<PartInfo>& parts,
                                     const CompleteOptions& declared) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    TRY(check_writable());
    // A concurrent second request for the same upload waits here, and then finds the object.
    const auto lock = upload_locks_.hold(upload_id);
    const auto upload = read_upload(*tree, key, upload_id);
    auto done = open_object(*tree, key);
    if (done && is_upload_id(upload_id) && done->record.upload_id == upload_id) {
      if (done->record.parts > 0) move_parts(*tree, upload_id);
      return std::move(done->record.info);
    }
    if (!upload) return upload.error();
    const std::string directory = upload_path(*tree, upload_id);
    const auto stored = TRY(read_parts(directory));
    const Joined joined = TRY(join_parts(parts, stored, upload->options, declared));
    // Adds an object only: the bytes of its parts are already counted.
    auto charge = use_.charge(bucket, upload->options.owner);
    TRY(charge.add(0, 1));
    const PutOptions& options = upload->options;
    const Record record{
        {key, joined.bytes, joined.etag, clock_.now(), options.content_type, options.headers,
         options.metadata, joined.checksums, options.owner, options.tags},
        upload_id,
        uint32_t(parts.size())};
    TRY(write_list(*tree, record, parts, stored, options.only_if_absent || declared.only_if_absent,
                   declared.only_if_etag));
    charge.keep();
    use_.remove(bucket, options.owner, {remove_unlisted_parts(directory, parts, stored), 0});
    move_parts(*tree, upload_id);
    return record.info;
  }

  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_writable());
    {
      const auto lock = upload_locks_.hold(upload_id);
      const UploadFile upload = TRY(read_upload(*tree, key, upload_id));
      if (belongs_to_object(*tree, key, upload_id)) {
        move_parts(*tree, upload_id);
        return no_upload(upload_id);
      }
      drop_upload(*tree, upload_id, upload.options.owner);
    }
    return disk_.sync_directory(tree->uploads_path());
  }

  Result<std::vector<PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id) override {
    const Tree tree = TRY(find(bucket));
    TRY(read_upload(*tree, key, upload_id));
    std::vector<PartInfo> parts;
    const auto stored = TRY(read_parts(upload_path(*tree, upload_id)));
    for (const auto& [number, part] : stored) parts.push_back(part);
    return parts;
  }

  Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket,
                                               const std::string& prefix) override {
    const Tree tree = TRY(find(bucket));
    std::vector<UploadInfo> uploads;
    const auto ids = TRY(os::list_directory(tree->uploads_path()));
    for (const auto& id : ids) {
      auto upload = read_upload(*tree, id);
      if (!upload && upload.error().kind != Kind::not_found)
        log(Level::error, "objects", "cannot read an upload", {{"why", upload.error().message}});
      if (!upload) continue;
      UploadInfo info = std::move(upload->info);
      if (info.key.starts_with(prefix)) uploads.push_back(std::move(info));
    }
    std::sort(uploads.begin(), uploads.end(), [](const UploadInfo& a, const UploadInfo& b) {
      return std::tie(a.key, a.upload_id) < std::tie(b.key, b.upload_id);
    });
    return uploads;
  }

  // -- upkeep

  std::optional<ObjectStatistics> statistics() const override {
    return ObjectStatistics{use_.buckets(), broken_reads_};
  }

  Result<void> clean_up(Instant now, Duration upload_lifetime) override {
    TRY(check_writable());
    std::vector<Tree> trees;
    {
      MutexLock lock(mutex_);
      for (const auto& [name, tree] : trees_) trees.push_back(tree);
    }
    for (const Tree& tree : trees) {
      const auto uploads = TRY(os::list_directory(tree->uploads_path()));
      for (const auto& id : uploads) clean_up_upload(*tree, id, now - upload_lifetime);
      const auto parts = os::list_directory(tree->parts_path());
      // Buckets that an earlier version made have no such directory.
      if (!parts && parts.error().kind == Kind::not_found) continue;
      for (const auto& id : TRY(parts)) clean_up_parts(*tree, id);
    }
    return ok();
  }

 private:
  // Fails after a failed sync: no written data can be trusted until the directory is opened again.
  Result<void> check_writable() const {
    const std::string failed = disk_.failed_sync();
    if (failed.empty()) return ok();
    return unavailable("the object store is read-only until the server is restarted: syncing " +
                       failed + " failed");
  }

  Result<void> write_list(BucketTree& tree, const Record& record,
                          const std::vector<PartInfo>& parts,
                          const std::map<uint32_t, PartInfo>& stored, bool only_if_absent,
                          const std::string& only_if_etag) {
    std::vector<PartEntry> entries;
    for (const auto& part : parts) {
      const PartInfo& kept = stored.at(part.number);
      entries.push_back({part.number, kept.bytes, kept.etag});
    }
    // A client may list a part before its put was answered, so its file may not be durable yet.
    TRY(disk_.sync_directory(upload_path(tree, record.upload_id)));
    auto file = TRY(TemporaryFile::make(temporary_path(), disk_));
    TRY(file.write(encode_part_list(entries)));
    TRY(file.write(encode_record(record)));
    TRY(file.sync());
    release_object(tree,
                   TRY(tree.install(file.path(), record.info.key, only_if_absent, only_if_etag)));
    file.moved_away();
    return ok();
  }

  // Removes parts that the object does not list, and returns their bytes.
  uint64_t remove_unlisted_parts(const std::string& directory, const std::vector<PartInfo>& parts,
                                 const std::map<uint32_t, PartInfo>& stored) {
    std::set<uint32_t> named;
    for (const auto& part : parts) named.insert(part.number);
    uint64_t bytes = 0;
    for (const auto& [number, part] : stored) {
      if (named.contains(number)) continue;
      static_cast<void>(disk_.remove(directory + "/" + part_name(number)));
      bytes += part.bytes;
    }
    return bytes;
  }

  // Moves the parts of an object from uploads/ to parts/. If that fails, the next request for the
  // upload or clean_up() tries again.
  void move_parts(const BucketTree& tree, const std::string& id) {
    const auto moved = [&]() -> Result<void> {
      TRY(disk_.make_directories(tree.parts_path(), 0700));
      auto renamed = disk_.rename(upload_path(tree, id), parts_of(tree, id));
      if (!renamed && renamed.error().kind == Kind::not_found) return ok();  // already moved
      TRY(renamed);
      TRY(disk_.sync_directory(tree.parts_path()));
      return disk_.sync_directory(tree.uploads_path());
    }();
    if (!moved)
      log(Level::warning, "objects",
          "could not move the parts of an object; they stay with its upload for now",
          {{"upload", id}, {"why", moved.error().message}});
  }

  // Subtracts the usage of a replaced or removed object, whose file was `before`, and removes its
  // parts.
  void release_object(const BucketTree& tree, const os::File& before) {
    if (!before) return;
    const auto record = read_record(before.descriptor(), "the replaced or removed object");
    struct stat status {};
    if (record)
      use_.remove(tree.info().name, record->info.owner, {record->info.bytes, 1});
    else if (fstat(before.descriptor(), &status) == 0)
      use_.remove(tree.info().name, "", {uint64_t(status.st_size), 1});
    if (record && record->parts > 0) held_parts_.drop(parts_of(tree, record->upload_id));
  }

  // Removes an upload that was started before `expired`. If its parts belong to an object, they are
  // moved to it instead.
  void clean_up_upload(const BucketTree& tree, const std::string& id, Instant expired) {
    const auto lock = upload_locks_.hold(id);
    const auto upload = read_upload(tree, id);
    if (!upload) return;
    if (belongs_to_object(tree, upload->info.key, id)) return move_parts(tree, id);
    if (upload->info.started >= expired) return;
    log(Level::info, "objects", "an upload that was not completed has expired",
        {{"bucket", tree.info().name}, {"key", upload->info.key}, {"upload", id}});
    drop_upload(tree, id, upload->options.owner);
  }

  // Removes parts whose object was replaced or removed. A crash after that leaves them.
  void clean_up_parts(const BucketTree& tree, const std::string& id) {
    if (!is_upload_id(id)) return;
    const auto lock = upload_locks_.hold(id);
    const auto text = os::read_file(parts_of(tree, id) + "/upload", kUploadFileBytesMax);
    const auto upload = text ? decode_upload(*text) : Result<UploadFile>(text.error());
    if (!upload) return;  // the object is unknown, so the files are kept
    const auto object = open_object(tree, upload->info.key);
    const bool gone =
        object ? object->record.upload_id != id : object.error().kind == Kind::not_found;
    if (gone) held_parts_.drop(parts_of(tree, id));
  }

  Result<std::unique_ptr<Writer>> make_writer(const std::string& key, const PutOptions& options,
                                              StorageUse::Charge charge,
                                              FileWriter::Install install) {
    TRY(check_key(key));
    TRY(check_options(options));
    TRY(check_writable());
    TRY(check_disk_space_());
    auto check = TRY(ContentCheck::make(options));
    auto file = TRY(TemporaryFile::make(temporary_path(), disk_));
    return std::unique_ptr<Writer>(new FileWriter(clock_, key, options, std::move(check),
                                                  std::move(file), std::move(install),
                                                  check_disk_space_, std::move(charge)));
  }

  // Returns a new path. Files of earlier processes were removed when the directory was opened.
  std::string temporary_path() { return path_ + "/temporary/" + std::to_string(++temporaries_); }

  // Removes files that are no longer reachable. If that fails, the next opening removes them.
  static void discard(const std::string& path) {
    const auto removed = os::remove_all(path);
    if (!removed)
      log(Level::warning, "objects", "could not remove a file",
          {{"path", path}, {"why", removed.error().message}});
  }

  // Removes an upload and subtracts the usage of its parts. Requires: the lock of the upload is
  // held.
  void drop_upload(const BucketTree& tree, const std::string& id, const std::string& owner) {
    uint64_t bytes = 0;
    if (const auto parts = read_parts(upload_path(tree, id)))
      for (const auto& [number, part] : *parts) bytes += part.bytes;
    move_and_discard(upload_path(tree, id));
    use_.remove(tree.info().name, owner, {bytes, 0});
  }

  void move_and_discard(const std::string& path) {
    const std::string dropped = temporary_path();
    const auto renamed = disk_.rename(path, dropped);
    if (renamed) discard(dropped);
    if (!renamed && renamed.error().kind != Kind::not_found)
      log(Level::warning, "objects", "could not remove a file",
          {{"path", path}, {"why", renamed.error().message}});
  }

  Result<Tree> find(const std::string& bucket) {
    MutexLock lock(mutex_);
    const auto found = trees_.find(bucket);
    if (found == trees_.end()) return no_bucket(bucket);
    return found->second;
  }

  const std::string path_;
  const os::FileLock lock_;
  Clock& clock_;
  Random& random_;
  const CheckDiskSpace check_disk_space_;
  const os::Disk disk_;
  StorageUse use_;
  std::atomic<uint64_t> broken_reads_ = 0;
  HeldParts held_parts_;
  NamedLocks upload_locks_;  // by upload ID: protects the upload's parts and directory
  std::atomic<uint64_t> temporaries_ = 0;
  Mutex mutex_;
  std::map<std::string, Tree> trees_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Objects>> open_directory(const std::string& path, Clock& clock,
                                                Random& random, const DirectorySettings& settings) {
  const std::string doing = "opening the objects in " + path;
  TRY(os::make_directories(path, 0700).in(doing));
  auto lock = TRY(os::FileLock::take_after_death(path + "/lock").in(doing));
  TRY(check_format(path).in(doing));
  auto directory = std::make_unique<Directory>(path, std::move(lock), clock, random, settings);
  TRY(directory->open().in(doing));
  return std::unique_ptr<Objects>(std::move(directory));
}

}  // namespace trainyard::objects

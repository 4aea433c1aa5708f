#include "objects/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "host/files.hpp"
#include "objects/checksum.hpp"
#include "objects/directory/bucket_tree.hpp"
#include "objects/directory/key_walk.hpp"
#include "objects/directory/record.hpp"
#include "objects/listing.hpp"
#include "objects/multipart.hpp"
#include "objects/names.hpp"

namespace trainyard::objects {
namespace {

constexpr std::string_view kFormat = "trainyard objects 1\n";
constexpr size_t kCopyBytes =
    16 << 20;  // one copy_file_range: long enough to be cheap, short enough to be interrupted
constexpr size_t kBucketFileBytesMax = 64 << 10;
constexpr size_t kUploadFileBytesMax = 256 << 10;  // as a record

// Shared by the table of buckets and by what is under way in the bucket; whoever is last frees it.
using Tree = std::shared_ptr<BucketTree>;

Result<void> write_whole(int descriptor, const char* at, size_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t written = write(descriptor, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return from_errno("writing " + path);
    at += written;
    bytes -= size_t(written);
  }
  return ok();
}

// A file in temporary/ that is removed unless it was moved away.
class TemporaryFile {
 public:
  static Result<TemporaryFile> make(std::string path) {
    host::File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return from_errno("making " + path);
    return TemporaryFile(std::move(path), std::move(file));
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::move(other.file_)) {
    other.path_.clear();
  }
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  int descriptor() const { return file_.descriptor(); }
  void moved_away() { path_.clear(); }

  Result<void> write(std::span<const char> bytes) {
    return write_whole(descriptor(), bytes.data(), bytes.size(), path_);
  }
  Result<void> sync() {
    if (fsync(descriptor()) != 0) return from_errno("syncing " + path_);
    return ok();
  }

 private:
  TemporaryFile(std::string path, host::File file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  host::File file_;
};

class FileReader final : public Reader {
 public:
  FileReader(host::File file, ObjectInfo info, Range range)
      : file_(std::move(file)), info_(std::move(info)), range_(range), at_(range.first) {}
  const ObjectInfo& info() const override { return info_; }
  Range range() const override { return range_; }
  Result<size_t> read(std::span<char> buffer) override {
    const size_t wanted = std::min<uint64_t>(buffer.size(), range_.last + 1 - at_);
    if (wanted == 0) return size_t(0);
    for (;;) {
      const ssize_t read = pread(file_.descriptor(), buffer.data(), wanted, off_t(at_));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) return from_errno("reading " + info_.key);
      if (read == 0) return corrupt("the file of " + info_.key + " ended early");
      at_ += uint64_t(read);
      return size_t(read);
    }
  }

 private:
  const host::File file_;
  const ObjectInfo info_;
  const Range range_;
  uint64_t at_;
};

// Writes an object's or a part's file; `install` moves it to its place and makes that durable.
class FileWriter final : public Writer {
 public:
  using Install = std::function<Result<void>(const std::string& file)>;

  FileWriter(Clock& clock, std::string key, PutOptions options, Promises promises, TemporaryFile file,
             Install install)
      : clock_(clock),
        key_(std::move(key)),
        options_(std::move(options)),
        promises_(std::move(promises)),
        file_(std::move(file)),
        install_(std::move(install)) {}

  Result<void> write(std::span<const char> bytes) override {
    promises_.add(bytes);
    return file_.write(bytes);
  }
  void expect_checksum(std::string algorithm, std::string base64) override {
    promises_.expect(std::move(algorithm), std::move(base64));
  }
  Result<ObjectInfo> commit() override {
    auto kept = TRY(promises_.finish());
    Record record;
    record.info = {key_,
                   kept.bytes,
                   kept.etag,
                   clock_.now(),
                   options_.content_type,
                   options_.headers,
                   options_.metadata,
                   kept.checksums};
    TRY(file_.write(encode_record(record)));
    TRY(file_.sync());
    TRY(install_(file_.path()));
    file_.moved_away();
    return record.info;
  }

 private:
  Clock& clock_;
  const std::string key_;
  const PutOptions options_;
  Promises promises_;
  TemporaryFile file_;
  const Install install_;
};

// What an upload's file says: its key and how the object shall be.
struct UploadFile {
  UploadInfo info;
  PutOptions options;
};

std::string encode_upload(const UploadFile& upload) {
  return dump(Json{{"key", upload.info.key},
                   {"started_ms", to_milliseconds(upload.info.started)},
                   {"content_type", upload.options.content_type},
                   {"headers", upload.options.headers},
                   {"metadata", upload.options.metadata},
                   {"checksums", upload.options.checksums},
                   {"checksum_of_whole", upload.options.checksum_of_whole},
                   {"only_if_absent", upload.options.only_if_absent}});
}

Result<std::map<std::string, std::string>> texts_at(const Json& json, const char* name) {
  std::map<std::string, std::string> texts;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return corrupt(std::string("no ") + name);
  for (const auto& [key, value] : found->items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

Result<UploadFile> decode_upload(const std::string& text) {
  const Json json = TRY(parse_json(text));
  UploadFile upload;
  upload.info.key = TRY(string_at(json, "key"));
  upload.info.started = from_milliseconds(TRY(int_at(json, "started_ms")));
  upload.options.content_type = TRY(string_at(json, "content_type"));
  upload.options.headers = TRY(texts_at(json, "headers"));
  upload.options.metadata = TRY(texts_at(json, "metadata"));
  upload.options.checksums = TRY(texts_at(json, "checksums"));
  upload.options.checksum_of_whole = TRY(bool_at(json, "checksum_of_whole"));
  upload.options.only_if_absent = TRY(bool_at(json, "only_if_absent"));
  return upload;
}

std::string part_name(uint32_t part) {
  char name[16];
  std::snprintf(name, sizeof name, "%05u", part);
  return name;
}

// Appends `bytes` from the start of `from` to `to`; inside the kernel, and shared instead of copied where the
// file system can.
Result<void> append_file(int from, uint64_t bytes, TemporaryFile& to) {
  off_t at = 0;
  bool in_kernel = true;
  std::vector<char> buffer;
  while (uint64_t(at) < bytes) {
    const size_t wanted = std::min<uint64_t>(kCopyBytes, bytes - uint64_t(at));
    if (in_kernel) {
      const ssize_t copied = copy_file_range(from, &at, to.descriptor(), nullptr, wanted, 0);
      if (copied > 0 || (copied < 0 && errno == EINTR)) continue;
      if (copied == 0) return corrupt("a part's file ended early");
      if (errno == ENOSPC || errno == EDQUOT || errno == EIO) return from_errno("joining parts");
      in_kernel = false;  // not between these files: by hand
      continue;
    }
    buffer.resize(std::min<size_t>(wanted, 1 << 20));
    const ssize_t read = pread(from, buffer.data(), buffer.size(), at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return from_errno("joining parts");
    if (read == 0) return corrupt("a part's file ended early");
    TRY(to.write(std::span(buffer).first(size_t(read))));
    at += read;
  }
  return ok();
}

class Directory final : public Objects {
 public:
  Directory(std::string path, host::FileLock lock, Clock& clock, Random& random)
      : path_(std::move(path)), lock_(std::move(lock)), clock_(clock), random_(random) {}

  Result<void> open() {
    TRY(host::make_directories(path_ + "/buckets", 0700));
    TRY(host::remove_all(path_ + "/temporary"));
    TRY(host::make_directories(path_ + "/temporary", 0700));
    TRY(host::sync_directory(path_));
    const auto buckets = TRY(host::list_directory(path_ + "/buckets"));
    for (const auto& name : buckets) {
      const std::string bucket_path = path_ + "/buckets/" + name;
      const std::string text = TRY(host::read_file(bucket_path + "/bucket", kBucketFileBytesMax));
      const Json json = TRY(parse_json(text).in(bucket_path));
      const BucketInfo info{name, TRY(string_at(json, "region").in(bucket_path)),
                            from_milliseconds(TRY(int_at(json, "created_ms").in(bucket_path)))};
      trees_[name] = std::make_shared<BucketTree>(info, bucket_path);
    }
    return ok();
  }

  // -- buckets

  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    TRY(check_bucket_name(bucket));
    const BucketInfo info{bucket, region, clock_.now()};
    const std::string made = temporary_path();
    const std::string path = path_ + "/buckets/" + bucket;
    TRY(host::make_directories(made + "/keys", 0700));
    TRY(host::make_directories(made + "/uploads", 0700));
    TRY(host::write_file_durably(
        made + "/bucket", dump(Json{{"region", region}, {"created_ms", to_milliseconds(info.created)}})));
    {
      std::lock_guard lock(mu_);
      if (trees_.contains(bucket)) {
        discard(made);
        return bucket_exists(bucket);
      }
      if (rename(made.c_str(), path.c_str()) != 0) return from_errno("renaming to " + path);
      trees_[bucket] = std::make_shared<BucketTree>(info, path);
    }
    return host::sync_directory(path_ + "/buckets");
  }

  Result<void> delete_bucket(const std::string& bucket) override {
    const std::string retired = temporary_path();
    {
      std::lock_guard lock(mu_);
      const auto found = trees_.find(bucket);
      if (found == trees_.end()) return no_bucket(bucket);
      TRY(found->second->retire(retired));
      trees_.erase(found);
    }
    TRY(host::sync_directory(path_ + "/buckets"));
    discard(retired);
    return ok();
  }

  Result<BucketInfo> head_bucket(const std::string& bucket) override { return TRY(find(bucket))->info(); }

  Result<std::vector<BucketInfo>> list_buckets() override {
    std::lock_guard lock(mu_);
    std::vector<BucketInfo> all;
    for (const auto& [name, tree] : trees_) all.push_back(tree->info());
    return all;
  }

  // -- objects

  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    auto [file, record] = TRY(open_object(*tree, key));
    const Range resolved = TRY(resolve_range(range, record.info.bytes));
    return std::unique_ptr<Reader>(new FileReader(std::move(file), std::move(record.info), resolved));
  }

  Result<ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    return TRY(open_object(*tree, key)).record.info;
  }

  Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                      const PutOptions& options) override {
    const Tree tree = TRY(find(bucket));
    return make_writer(key, options, [tree, key, options](const std::string& file) {
      return tree->install(file, key, options.only_if_absent);
    });
  }

  Result<void> remove(const std::string& bucket, const std::string& key) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    return tree->remove(key);
  }

  Result<ListPage> list(const std::string& bucket, const ListQuery& query) override {
    const Tree tree = TRY(find(bucket));
    KeyWalk walk(
        tree->keys_path(), tree->names(), [&](const std::string& key) -> Result<std::optional<ObjectInfo>> {
          auto opened = open_object(*tree, key);
          if (!opened && opened.error().kind == Kind::not_found) return std::optional<ObjectInfo>();
          const Opened found = TRY(std::move(opened));
          const ObjectInfo& info = found.record.info;
          return std::optional(
              ObjectInfo{.key = key, .bytes = info.bytes, .etag = info.etag, .modified = info.modified});
        });
    return list_page(walk, query);
  }

  // -- uploads

  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const PutOptions& options) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    TRY(check_options(options));
    TRY(Promises::make(options));
    const std::string id = random_.hex(16);
    const std::string made = temporary_path();
    const std::string path = upload_path(*tree, id);
    TRY(host::make_directories(made, 0700));
    TRY(host::write_file_durably(made + "/upload", encode_upload({{key, id, clock_.now()}, options})));
    if (rename(made.c_str(), path.c_str()) != 0) {
      const int error_number = errno;
      discard(made);
      if (error_number == ENOENT) return no_bucket(bucket);
      return from_errno("renaming to " + path, error_number);
    }
    TRY(host::sync_directory(tree->uploads_path()));
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
    const std::string directory = upload_path(*tree, upload_id);
    return make_writer(key, of_part, [directory, upload_id, part](const std::string& file) -> Result<void> {
      if (rename(file.c_str(), (directory + "/" + part_name(part)).c_str()) != 0) {
        if (errno == ENOENT) return no_upload(upload_id);
        return from_errno("renaming to " + directory);
      }
      return host::sync_directory(directory);
    });
  }

  Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                     const std::string& upload_id, const std::vector<PartInfo>& parts,
                                     const CompleteOptions& promised) override {
    const Tree tree = TRY(find(bucket));
    TRY(check_key(key));
    const auto upload = read_upload(*tree, key, upload_id);
    if (!upload) {
      auto done = open_object(*tree, key);
      if (done && done->record.upload_id == upload_id && !upload_id.empty())
        return std::move(done->record.info);
      return upload.error();
    }
    const std::string directory = upload_path(*tree, upload_id);
    const auto stored = TRY(read_parts(directory));
    const Joined joined = TRY(join_parts(parts, stored, upload->options, promised));

    auto file = TRY(TemporaryFile::make(temporary_path()));
    for (const auto& part : parts) {
      const std::string path = directory + "/" + part_name(part.number);
      auto [part_file, record] = TRY(open_recorded(path).in("joining parts"));
      if (record.info.etag != stored.at(part.number).etag)
        return invalid(std::string(fault::kPartInvalid) + ": part " + std::to_string(part.number) +
                       " was replaced while the upload was completed");
      TRY(append_file(part_file.descriptor(), record.info.bytes, file));
    }
    const PutOptions& options = upload->options;
    const Record record{{key, joined.bytes, joined.etag, clock_.now(), options.content_type, options.headers,
                         options.metadata, joined.checksums},
                        upload_id};
    TRY(file.write(encode_record(record)));
    TRY(file.sync());
    TRY(tree->install(file.path(), key, options.only_if_absent || promised.only_if_absent));
    file.moved_away();
    // A crash before this leaves the upload listed beside its object; completing or aborting it again removes
    // it.
    drop_upload(*tree, upload_id);
    return record.info;
  }

  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    const Tree tree = TRY(find(bucket));
    TRY(read_upload(*tree, key, upload_id));
    drop_upload(*tree, upload_id);
    return host::sync_directory(tree->uploads_path());
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
    const auto ids = TRY(host::list_directory(tree->uploads_path()));
    for (const auto& id : ids) {
      auto upload = read_upload(*tree, id);
      if (!upload && upload.error().kind == Kind::not_found) continue;
      UploadInfo info = TRY(std::move(upload)).info;
      if (info.key.starts_with(prefix)) uploads.push_back(std::move(info));
    }
    std::sort(uploads.begin(), uploads.end(), [](const UploadInfo& a, const UploadInfo& b) {
      return std::tie(a.key, a.upload_id) < std::tie(b.key, b.upload_id);
    });
    return uploads;
  }

 private:
  struct Opened {
    host::File file;
    Record record;
  };

  // Errors: not_found without a word of `fault`.
  static Result<Opened> open_recorded(const std::string& path) {
    host::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return from_errno("opening " + path);
    Record record = TRY(read_record(file.descriptor(), path));
    return Opened{std::move(file), std::move(record)};
  }

  static Result<Opened> open_object(const BucketTree& tree, const std::string& key) {
    auto opened = open_recorded(tree.path_of_key(key));
    if (!opened && opened.error().kind == Kind::not_found) return no_key(tree.info().name, key);
    return opened;
  }

  Result<std::unique_ptr<Writer>> make_writer(const std::string& key, const PutOptions& options,
                                              FileWriter::Install install) {
    TRY(check_key(key));
    TRY(check_options(options));
    auto promises = TRY(Promises::make(options));
    auto file = TRY(TemporaryFile::make(temporary_path()));
    return std::unique_ptr<Writer>(
        new FileWriter(clock_, key, options, std::move(promises), std::move(file), std::move(install)));
  }

  // Unique for as long as the directory is open; what a former process left was swept when it was opened.
  std::string temporary_path() { return path_ + "/temporary/" + std::to_string(++temporaries_); }

  // What nobody can see any more. What cannot be removed now, the next opening sweeps.
  static void discard(const std::string& path) {
    const auto removed = host::remove_all(path);
    if (!removed)
      log(Level::warning, "objects", "could not remove", {{"path", path}, {"why", removed.error().message}});
  }

  static std::string upload_path(const BucketTree& tree, const std::string& id) {
    return tree.uploads_path() + "/" + id;
  }

  static Result<UploadFile> read_upload(const BucketTree& tree, const std::string& id) {
    // It comes from outside and becomes a path.
    if (id.size() != 32 || id.find_first_not_of("0123456789abcdef") != id.npos) return no_upload(id);
    const auto text = host::read_file(upload_path(tree, id) + "/upload", kUploadFileBytesMax);
    if (!text && text.error().kind == Kind::not_found) return no_upload(id);
    if (!text) return text.error();
    auto upload = decode_upload(*text);
    if (!upload) return corrupt(upload_path(tree, id) + ": " + upload.error().message);
    upload->info.upload_id = id;
    return upload;
  }
  static Result<UploadFile> read_upload(const BucketTree& tree, const std::string& key,
                                        const std::string& id) {
    auto upload = TRY(read_upload(tree, id));
    if (upload.info.key != key) return no_upload(id);
    return upload;
  }

  static Result<std::map<uint32_t, PartInfo>> read_parts(const std::string& directory) {
    std::map<uint32_t, PartInfo> parts;
    const auto names = TRY(host::list_directory(directory));
    for (const auto& name : names) {
      const auto number = parse_int(name);
      if (!number || *number < 1 || *number > kPartsMax) continue;
      auto opened = open_recorded(directory + "/" + name);
      if (!opened && opened.error().kind == Kind::not_found) continue;  // the upload ended in the meantime
      const Opened found = TRY(std::move(opened));
      const ObjectInfo& info = found.record.info;
      parts[uint32_t(*number)] = {uint32_t(*number), info.etag, info.bytes, info.modified, info.checksums};
    }
    return parts;
  }

  void drop_upload(const BucketTree& tree, const std::string& id) {
    const std::string dropped = temporary_path();
    if (rename(upload_path(tree, id).c_str(), dropped.c_str()) == 0) discard(dropped);
  }

  Result<Tree> find(const std::string& bucket) {
    std::lock_guard lock(mu_);
    const auto found = trees_.find(bucket);
    if (found == trees_.end()) return no_bucket(bucket);
    return found->second;
  }

  const std::string path_;
  const host::FileLock lock_;
  Clock& clock_;
  Random& random_;
  std::atomic<uint64_t> temporaries_ = 0;
  std::mutex mu_;
  std::map<std::string, Tree> trees_;  // guarded by mu_
};

}  // namespace

Result<std::unique_ptr<Objects>> open_directory(const std::string& path, Clock& clock, Random& random) {
  const std::string doing = "opening the objects in " + path;
  TRY(host::make_directories(path, 0700).in(doing));
  auto lock = TRY(host::FileLock::take_after_death(path + "/lock").in(doing));
  const std::string format_path = path + "/format";
  if (host::exists(format_path)) {
    const std::string format = TRY(host::read_file(format_path, 4096).in(doing));
    if (format != kFormat)
      return invalid(doing + ": its format is '" + shorten(trim(format), 80) + "', this program writes '" +
                     std::string(trim(kFormat)) + "'; a newer version wrote it");
  } else {
    TRY(host::write_file_durably(format_path, kFormat).in(doing));
  }
  auto directory = std::make_unique<Directory>(path, std::move(lock), clock, random);
  TRY(directory->open().in(doing));
  return std::unique_ptr<Objects>(std::move(directory));
}

}  // namespace trainyard::objects

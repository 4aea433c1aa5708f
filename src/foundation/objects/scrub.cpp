#include "objects/scrub.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "objects/directory/key_path.hpp"
#include "objects/directory/key_walk.hpp"
#include "objects/directory/readers.hpp"
#include "objects/names.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

// limit of reads of an object that is replaced during each of them
constexpr int kTriesMax = 3;

// Identifies the file at a path, to detect that it was replaced.
struct Identity {
  ino_t inode = 0;
  timespec changed{};
  bool operator==(const Identity& other) const {
    return inode == other.inode && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};
Identity identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, status.st_ctim};
}

uint64_t file_bytes_below(const std::string& path) {
  uint64_t bytes = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(path, error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code of_one;
    const auto size = at->is_regular_file(of_one) ? at->file_size(of_one) : 0;
    if (!of_one) bytes += size;
  }
  return bytes;
}

class Scrub {
 public:
  explicit Scrub(const ScrubSettings& settings) : settings_(settings), buffer_(kScrubStepBytes) {}

  Result<ScrubReport> run(const std::string& path) {
    const auto buckets = TRY(buckets_of(path));
    for (const auto& bucket : buckets)
      progress_.bytes_total += file_bytes_below(path + "/" + bucket + "/keys") +
                               file_bytes_below(path + "/" + bucket + "/parts");
    for (const auto& bucket : buckets) {
      TRY(scrub_bucket(path + "/" + bucket, bucket));
      if (!report_.whole) break;
    }
    report_.objects = progress_.objects;
    report_.bytes = progress_.bytes;
    return std::move(report_);
  }

 private:
  Result<std::vector<std::string>> buckets_of(const std::string& path) const {
    if (settings_.bucket.empty()) return os::list_directory(path);
    TRY(check_bucket_name(settings_.bucket));
    if (!os::exists(path + "/" + settings_.bucket)) return no_bucket(settings_.bucket);
    return std::vector<std::string>{settings_.bucket};
  }

  Result<void> scrub_bucket(const std::string& path, const std::string& bucket) {
    NamesCache names;
    KeyWalk walk(path + "/keys", names,
                 [](const std::string&) { return std::optional<ObjectInfo>(); });
    std::string bound;
    const auto never = [](std::string_view) { return false; };
    for (;;) {
      const auto key = TRY(walk.at_or_after(bound, never).in("walking the keys of " + bucket));
      if (!key) return ok();
      scrub_object(path, bucket, *key);
      if (!report_.whole) return ok();
      bound = *key + '\0';
    }
  }

  void scrub_object(const std::string& path, const std::string& bucket, const std::string& key) {
    const std::string file = path + "/keys/" + path_of(key);
    for (int tries = 1;; ++tries) {
      const Identity before = identity_of(file);
      const auto read = read_object(path, file, key);
      if (!report_.whole) return;
      if (!read && !(identity_of(file) == before)) {
        if (!os::exists(file)) return;  // removed
        if (tries < kTriesMax) continue;
      }
      ++progress_.objects;
      if (read) return;
      if (report_.broken.size() < kBrokenNamedMax)
        report_.broken.push_back({bucket, key, read.error().message});
      else
        ++report_.broken_not_named;
      return;
    }
  }

  Result<void> read_object(const std::string& path, const std::string& file,
                           const std::string& key) {
    auto opened = TRY(open_recorded(file));
    if (opened.record.info.key != key)
      return corrupt("its record belongs to the key '" + opened.record.info.key + "'");
    const Range whole = TRY(resolve_range({}, opened.record.info.bytes));
    if (opened.record.parts > 0) {
      const std::string& id = opened.record.upload_id;
      PartsPaths paths{path + "/parts/" + id, path + "/uploads/" + id, {}};
      const auto reader = TRY(read_parts_of(std::move(opened), std::move(paths), whole));
      return read_through(*reader);
    }
    if (!cheapest_checksum(opened.record.info, EtagUse::compare)) ++report_.without_checksum;
    return read_through(*read_file_of(std::move(opened), whole));
  }

  Result<void> read_through(Reader& reader) {
    for (;;) {
      const size_t bytes = TRY(reader.read(buffer_));
      progress_.bytes += bytes;
      if (bytes == 0) return ok();
      report_.whole = settings_.may_continue(progress_);
      if (!report_.whole) return ok();
    }
  }

  const ScrubSettings& settings_;
  std::vector<char> buffer_;
  ScrubProgress progress_;
  ScrubReport report_;
};

}  // namespace

Result<ScrubReport> scrub_directory(const std::string& path, const ScrubSettings& settings) {
  if (!os::exists(path + "/format"))
    return not_found("opening " + path + ": not a directory of Trainyard objects");
  return Scrub(settings).run(path + "/buckets");
}

}  // namespace trainyard::objects

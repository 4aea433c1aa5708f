#include "agent/files/checkpoint_sync.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "agent/files/fetch.hpp"
#include "agent/files/key_paths.hpp"
#include "agent/files/listing.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kSyncBufferBytes = 256 << 10;
// The first of the last passes copies everything; the second verifies it.
constexpr int kLastIterationsMax = 5;

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

Stamp stamp_of(const struct stat& status) {
  return {status.st_ino, static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

Result<Stamp> stamp_of(const os::File& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return from_errno(path);
  return stamp_of(status);
}

// Returns true if all bytes read since `before` was taken are one content of the file. A file that
// was replaced or deleted meanwhile has lost its name, which changes its stamp but not its bytes.
// If the file `grows`, more bytes may have followed.
Result<bool> is_the_same(const os::File& file, const Stamp& before, bool grows,
                         const std::string& path) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) return from_errno(path);
  Stamp now = stamp_of(status);
  if (grows) return now.inode == before.inode && now.bytes >= before.bytes;
  if (status.st_nlink == 0) now.changed = before.changed;
  return now == before;
}

// Makes restored files writable for any user that the image may run as, and sets their times to
// those in the store: programs find their newest checkpoint by them.
Result<Stamp> hand_over(const Tree& tree, const std::string& path, Instant modified) {
  const auto file = TRY(tree.open_file(path));
  // tv_nsec must not be negative, even for times before 1970.
  const auto second = std::chrono::floor<std::chrono::seconds>(modified);
  const timespec time{second.time_since_epoch().count(), (modified - second).count() * 1'000'000};
  const timespec times[2] = {time, time};
  if (::fchmod(file.descriptor(), 0666) != 0 || ::futimens(file.descriptor(), times) != 0)
    return from_errno(path);
  return stamp_of(file, path);
}

}  // namespace

CheckpointSync::CheckpointSync(SyncSettings settings, Tree base, objects::Objects& objects,
                               const JobKeys& keys, Facts& facts, Clock& clock)
    : settings_(std::move(settings)),
      base_(std::move(base)),
      objects_(objects),
      keys_(keys),
      facts_(facts),
      clock_(clock) {}

CheckpointSync::~CheckpointSync() {
  thread_interruption_.order();
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Error CheckpointSync::error_of_listing(Error error) const {
  if (error.kind == Kind::not_found)
    return not_found("bucket " + settings_.to.bucket + " not found (" + uri() + ")");
  return std::move(error).in("listing " + uri());
}

Result<void> CheckpointSync::make_directory() {
  const auto tree = TRY(base_.make(settings_.directory));
  TRY(tree.set_mode("", 0777));
  objects::ListQuery query;
  query.prefix = settings_.to.key;
  query.keys_max = 1;
  auto listed = objects_.list(settings_.to.bucket, query);
  if (!listed) return error_of_listing(std::move(listed).error());
  return {};
}

Result<void> CheckpointSync::restore(const Interruption& interruption) {
  const auto tree = TRY(base_.make(settings_.directory));
  TRY(tree.set_mode("", 0777));
  auto listed = list_all(objects_, settings_.to, interruption);
  if (!listed) return error_of_listing(std::move(listed).error());

  std::vector<Download> downloads;
  std::map<std::string, Instant> modified;
  for (const auto& object : *listed) {
    const std::string rest = object.key.substr(settings_.to.key.size());
    if (rest.empty() || rest.ends_with('/') || is_left_out(rest)) continue;
    auto path = path_of_key(object.key, rest);
    if (!path || *path != rest) {
      report_once(rest, path ? "it would overwrite the file " + *path : path.error().message);
      continue;
    }
    modified[*path] = object.modified;
    downloads.push_back(
        {settings_.to.bucket, object.key, std::move(*path), object.bytes, object.etag});
  }
  // A file in place of a directory was left by a crash during a change: the directory is newer.
  std::erase_if(downloads, [&](const Download& download) {
    const auto below = modified.upper_bound(download.path + "/");
    const bool hidden = below != modified.end() && below->first.starts_with(download.path + "/");
    if (hidden) report_once(download.path, "there are also files below it");
    return hidden;
  });
  if (const auto free_bytes = tree.free_bytes())
    TRY(check_disk_space(downloads, *free_bytes, uri()));
  TRY(fetch_all(objects_, downloads, tree, interruption));
  std::set<std::string> directories;
  for (const auto& download : downloads) {
    for (size_t slash = download.path.find('/'); slash != std::string::npos;
         slash = download.path.find('/', slash + 1)) {
      const std::string directory = download.path.substr(0, slash);
      if (directories.insert(directory).second) TRY(tree.set_mode(directory, 0777));
    }
    stored_[download.path] = TRY(hand_over(tree, download.path, modified.at(download.path)));
  }
  return {};
}

void CheckpointSync::start() {
  thread_ = std::thread([this] { run(); });
}

bool CheckpointSync::ending() const {
  const MutexLock lock(mutex_);
  return ending_;
}

void CheckpointSync::run() {
  Duration interval = settings_.interval;
  bool outage = false;
  while (!ending()) {
    const auto began = clock_.monotonic();
    const auto keys = keys_.get();
    // Without valid keys every request would fail; the server will send new ones.
    if (keys && keys->expires > clock_.now()) {
      const auto done = iterate(false, thread_interruption_);
      if (done || done.error().kind == Kind::cancelled) {
        interval = settings_.interval;
        outage = false;
      } else {
        if (!outage)
          facts_.say(settings_.place + " cannot be copied to " + uri() + ": " +
                     done.error().message + "; retrying");
        outage = true;
        interval = std::min(2 * interval, kOutageIntervalMax);
      }
    }
    const auto rest = std::max<std::chrono::nanoseconds>(
        interval, kScanPauseFactor * (clock_.monotonic() - began));
    MutexLock lock(mutex_);
    changed_.wait_for(lock, rest, [&]() REQUIRES(mutex_) { return ending_; });
  }
}

Result<void> CheckpointSync::finish(const Interruption& interruption) {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  // A started upload is completed, unless the caller is interrupted.
  if (thread_.joinable()) thread_.join();
  for (int iterations = 0; iterations < kLastIterationsMax; ++iterations) {
    if (TRY(iterate(true, interruption))) return {};
  }
  return internal(settings_.place + " changes although all processes have ended");
}

Result<bool> CheckpointSync::iterate(bool last, const Interruption& interruption) {
  const auto tree = base_.below(settings_.directory);
  if (!tree) return tree.error();
  auto now = scan(*tree);
  const auto plan = plan_sync(before_, now, stored_, settings_.rules, last);
  before_ = std::move(now);
  // Removes markers of files that were deleted before they could be copied.
  std::erase_if(marked_, [&](const std::string& path) {
    if (before_.files.contains(path)) return false;
    mark(*tree, path, "", kUploadingMark);
    return true;
  });
  const auto may_continue = [&]() -> Result<bool> {
    TRY(interruption.check());
    return last || !ending();
  };
  for (const auto& path : plan.remove_first) {
    if (!TRY(may_continue())) return false;
    TRY(remove(*tree, path));
  }
  for (const auto& path : plan.upload) {
    if (!TRY(may_continue())) return false;
    TRY(upload(*tree, path, before_.files.at(path), interruption));
  }
  for (const auto& path : plan.remove) {
    if (!TRY(may_continue())) return false;
    TRY(remove(*tree, path));
  }
  return plan.empty();
}

DirectoryScan CheckpointSync::scan(const Tree& tree) {
  DirectoryScan now;
  const auto walked = tree.walk("", [&](const Tree::Entry& entry) -> Result<void> {
    if (S_ISDIR(entry.status.st_mode)) {
      if (entry.too_deep) report_once(entry.path, "its directory is too deep");
      now.whole = now.whole && !entry.too_deep;
      return {};
    }
    if (is_left_out(entry.path)) return {};
    if (!S_ISREG(entry.status.st_mode)) {
      report_once(entry.path,
                  S_ISLNK(entry.status.st_mode) ? "it is a link" : "it is not a regular file");
    } else if (!is_utf8(entry.path)) {
      report_once(entry.path, "its name is not UTF-8");
    } else if (settings_.to.key.size() + entry.path.size() > objects::kKeyBytesMax) {
      report_once(entry.path, "its key would be longer than " +
                                  std::to_string(objects::kKeyBytesMax) + " bytes");
    } else if (now.files.size() >= kSyncedFilesMax) {
      report_once("", "there are more than " + std::to_string(kSyncedFilesMax) + " files");
      now.whole = false;
    } else {
      now.files[entry.path] = stamp_of(entry.status);
    }
    return {};
  });
  if (!walked) report_once("", walked.error().message);
  now.whole = now.whole && walked;
  return now;
}

Result<void> CheckpointSync::upload(const Tree& tree, const std::string& path, const Stamp& stamp,
                                    const Interruption& interruption) {
  mark(tree, path, kUploadingMark, kUploadedMark);
  marked_.insert(path);
  const auto outcome = TRY(put(tree, path, stamp, interruption).in(settings_.place + "/" + path));
  if (outcome == Outcome::changed) return {};  // changed or deleted: the next scan decides
  stored_[path] = stamp;
  mark(tree, path, kUploadedMark, kUploadingMark);
  marked_.erase(path);
  return {};
}

Result<CheckpointSync::Outcome> CheckpointSync::put(const Tree& tree, const std::string& path,
                                                    const Stamp& stamp,
                                                    const Interruption& interruption) {
  const auto opened = tree.open_file(path);
  if (!opened && (opened.error().kind == Kind::not_found || opened.error().kind == Kind::invalid))
    return Outcome::changed;
  if (!opened) return opened.error();
  const os::File& file = *opened;
  const bool grows = settings_.rules.event_files && is_event_file(path);
  if (!TRY(is_the_same(file, stamp, grows, path))) return Outcome::changed;
  objects::PutOptions options;
  options.bytes = stamp.bytes;
  const auto writer = TRY(objects_.put(settings_.to.bucket, settings_.to.key + path, options));
  std::vector<char> buffer(std::min<uint64_t>(kSyncBufferBytes, stamp.bytes + 1));
  for (uint64_t at = 0;;) {
    TRY(interruption.check());
    const uint64_t wanted =
        grows ? std::min<uint64_t>(buffer.size(), stamp.bytes - at) : buffer.size();
    const ssize_t got = ::pread(file.descriptor(), buffer.data(), wanted, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(path);
    if (got == 0 && at < stamp.bytes) return Outcome::changed;
    if (got == 0) break;
    at += static_cast<uint64_t>(got);
    if (at > stamp.bytes) return Outcome::changed;
    TRY(writer->write(std::span<const char>(buffer).first(static_cast<size_t>(got))));
  }
  if (!TRY(is_the_same(file, stamp, grows, path))) return Outcome::changed;
  TRY(writer->commit());
  return Outcome::stored;
}

Result<void> CheckpointSync::remove(const Tree& tree, const std::string& path) {
  TRY(objects_.remove(settings_.to.bucket, settings_.to.key + path).in("removing " + uri() + path));
  stored_.erase(path);
  mark(tree, path, "", kUploadingMark);
  mark(tree, path, "", kUploadedMark);
  marked_.erase(path);
  return {};
}

// Adds and removes a marker. Errors are ignored: markers are optional.
void CheckpointSync::mark(const Tree& tree, const std::string& path, std::string_view add,
                          std::string_view drop) const {
  if (!settings_.marks) return;
  Result<void> done;
  if (!add.empty()) done = tree.touch(path + std::string(add));
  if (done) done = tree.remove(path + std::string(drop));
  if (!done)
    log(Level::info, "agent", "cannot create a marker file",
        {{"path", path}, {"error", done.error().message}});
}

void CheckpointSync::report_once(const std::string& path, const std::string& why) {
  if (reported_.size() >= kReportedPathsMax || !reported_.insert(path).second) return;
  facts_.say(settings_.place + (path.empty() ? "" : "/" + to_utf8(path)) + " is not copied to " +
             uri() + ": " + why);
}

}  // namespace trainyard::agent

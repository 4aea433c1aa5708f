#include "observe/audit.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "observe/disk.hpp"

namespace trainyard::observe {
namespace {

constexpr Duration kRetryAfter{1'000};  // after a failed write
constexpr size_t kNumberDigits = 8;     // of a file's name, so that names sort by number
constexpr std::string_view kSuffix = ".jsonl";

struct AuditFile {
  uint64_t number = 0;
  std::string day;  // "2026-11-20"
  std::string path;
};

std::string day_of(Instant at) { return to_iso8601(at).substr(0, 10); }

std::string file_path(const std::string& directory, uint64_t number, const std::string& day) {
  std::string digits = std::to_string(number);
  if (digits.size() < kNumberDigits) digits.insert(0, kNumberDigits - digits.size(), '0');
  return directory + "/" + digits + "-" + day + std::string(kSuffix);
}

// Lists the log's files in the order of their numbers, and ignores other files in the directory.
Result<std::vector<AuditFile>> list_files(const std::string& directory) {
  std::vector<AuditFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.size() != kNumberDigits + 11 + kSuffix.size() || !name.ends_with(kSuffix)) continue;
    const auto number = parse_int(std::string_view(name).substr(0, kNumberDigits));
    if (!number || *number <= 0) continue;
    files.push_back(
        {uint64_t(*number), name.substr(kNumberDigits + 1, 10), entries->path().string()});
  }
  if (error) return from_errno("listing " + directory, error.value());
  std::ranges::sort(files, {}, &AuditFile::number);
  return files;
}

Result<std::string> read_all(const std::string& path) {
  const auto file = TRY(Descriptor::open(path, O_RDONLY));
  return file.read(0, TRY(file.length()));
}

// Returns the whole lines of a file, without an incomplete line after the last newline.
std::string_view whole_lines(std::string_view bytes) {
  const size_t end = bytes.rfind('\n');
  return end == std::string_view::npos ? std::string_view() : bytes.substr(0, end + 1);
}

std::string_view last_line(std::string_view whole) {
  whole.remove_suffix(1);
  const size_t begin = whole.rfind('\n');
  return begin == std::string_view::npos ? whole : whole.substr(begin + 1);
}

class FileAuditLog final : public AuditLog {
 public:
  FileAuditLog(std::string directory, AuditLimits limits)
      : directory_(std::move(directory)), limits_(limits) {}

  ~FileAuditLog() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (writer_.joinable()) writer_.join();
  }

  Result<void> start() {
    TRY(os::make_directories(directory_));
    TRY(find_end());
    writer_ = std::thread([this] { write_queued(); });
    return ok();
  }

  Result<void> append(std::string record, Instant at, WhenFull when_full) override {
    if (record.size() > kAuditRecordBytesMax)
      return invalid("an audit record of " + std::to_string(record.size()) + " bytes: at most " +
                     std::to_string(kAuditRecordBytesMax) + " are kept");
    MutexLock lock(mutex_);
    const auto has_space = [this]() REQUIRES(mutex_) {
      return queue_.size() + in_writing_ < limits_.queue_records_max;
    };
    if (!has_space() && (when_full == WhenFull::drop ||
                         !progress_.wait_for(lock, limits_.append_wait_max, has_space)))
      return unavailable("the audit log cannot be written: its queue is full");
    queue_.push_back({std::move(record), at});
    ++appended_;
    const bool first_urgent = when_full == WhenFull::wait && !urgent_;
    urgent_ = urgent_ || first_urgent;
    const bool wakes =
        queue_.size() == 1 || first_urgent || queue_.size() == limits_.queue_records_max / 2;
    lock.unlock();
    if (wakes) wake_.notify_all();
    return ok();
  }

  Result<void> flush() override {
    MutexLock lock(mutex_);
    const uint64_t wanted = appended_;
    ++flushing_;
    wake_.notify_all();
    const bool done = progress_.wait_for(lock, limits_.append_wait_max,
                                         [&]() REQUIRES(mutex_) { return written_ >= wanted; });
    --flushing_;
    return done ? ok() : unavailable("the audit log cannot be written");
  }

  Result<AuditPage> lookup(const AuditQuery& query) override;

 private:
  struct Queued {
    std::string record;
    Instant at;
  };

  // -- called by the writer's thread, and by start() before that thread exists

  // Finds the end of the log: cuts off a torn line, and computes the digest of the last whole line.
  Result<void> find_end() {
    const auto files = TRY(list_files(directory_));
    for (auto file = files.rbegin(); file != files.rend(); ++file) {
      const std::string bytes = TRY(read_all(file->path));
      const std::string_view whole = whole_lines(bytes);
      if (file == files.rbegin()) TRY(open_file(*file, whole.size(), O_WRONLY));
      if (whole.empty()) continue;
      digest_ = line_digest(last_line(whole));
      return ok();
    }
    return ok();
  }

  // Truncates the file to `length` and continues there. Errors: corrupt: it is shorter; by errno.
  Result<void> open_file(const AuditFile& file, uint64_t length, int flags) {
    auto opened = TRY(Descriptor::open(file.path, flags));
    if (TRY(opened.length()) < length)
      return corrupt(file.path + " is shorter than what was written");
    TRY(opened.truncate(length));
    TRY(opened.sync());
    TRY(os::sync_directory(directory_));
    current_ = file;
    length_ = length;
    descriptor_.emplace(std::move(opened));
    return ok();
  }

  void write_queued() {
    std::vector<Queued> batch;
    MutexLock lock(mutex_);
    while (true) {
      if (batch.empty()) {
        wake_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        gather(lock);
        batch.swap(queue_);
        urgent_ = false;
        in_writing_ = batch.size();
      }
      lock.unlock();
      const size_t count = write(batch);
      batch.erase(batch.begin(), batch.begin() + ptrdiff_t(count));
      lock.lock();
      in_writing_ = batch.size();
      written_ += count;
      progress_.notify_all();
      if (count > 0) continue;
      if (stopping_) return;
      wake_.wait_for(lock, kRetryAfter, [this]() REQUIRES(mutex_) { return stopping_; });
    }
  }

  // Waits for further records of a batch.
  void gather(MutexLock& lock) REQUIRES(mutex_) {
    const auto is_due = [this]() REQUIRES(mutex_) {
      return stopping_ || flushing_ > 0 || queue_.size() >= limits_.queue_records_max / 2;
    };
    wake_.wait_for(lock, limits_.gather_droppable_for,
                   [&]() REQUIRES(mutex_) { return urgent_ || is_due(); });
    if (urgent_) wake_.wait_for(lock, limits_.gather_for, is_due);
  }

  // Writes the first records of the batch, as many as the current file takes. Returns the number
  // that is on disk.
  size_t write(const std::vector<Queued>& batch) {
    if (auto ready = make_ready(batch[0].at); !ready) return failed(ready.error());
    std::string lines, digest = digest_;
    size_t count = 0;
    for (const Queued& one : batch) {
      if (day_of(one.at) != current_.day || length_ + lines.size() >= limits_.file_bytes_max) break;
      const std::string line = format_audit_line(one.record, digest);
      digest = line_digest(line);
      lines.append(line).append("\n");
      ++count;
    }
    auto written = descriptor_->write(length_, lines);
    if (written) written = descriptor_->sync();
    if (!written) return failed(written.error());
    length_ += lines.size();
    digest_ = digest;
    return count;
  }

  // Opens the file for the next record. A failed write may have left bytes after length_, which are
  // cut off first.
  Result<void> make_ready(Instant at) {
    const std::string day = day_of(at);
    bool usable = current_.number > 0;
    if (usable && !descriptor_) {
      const auto again = open_file(current_, length_, O_WRONLY);
      usable = bool(again);
      const Kind kind = again ? Kind::internal : again.error().kind;
      if (!again && kind != Kind::corrupt && kind != Kind::not_found) return again;
    }
    if (usable && current_.day == day && length_ < limits_.file_bytes_max) return ok();
    const uint64_t number = current_.number + 1;
    descriptor_.reset();
    TRY(os::make_directories(directory_));
    TRY(open_file({number, day, file_path(directory_, number, day)}, 0,
                  O_WRONLY | O_CREAT | O_EXCL));
    if (auto removed = remove_old_files(at); !removed)
      log(Level::error, "observe", "cannot remove old files of the audit log",
          {{"why", removed.error().message}});
    return ok();
  }

  // Removes old files, so that total_bytes_max includes the full size of the new file. The new file
  // is never removed.
  Result<void> remove_old_files(Instant at) {
    const std::string oldest_day = day_of(at - limits_.retention);
    uint64_t bytes = limits_.file_bytes_max;
    auto files = TRY(list_files(directory_));
    std::ranges::reverse(files);
    for (const AuditFile& file : files) {
      if (file.number >= current_.number) continue;
      bytes += TRY(TRY(Descriptor::open(file.path, O_RDONLY)).length());
      const bool expired = file.day < oldest_day;
      if (!expired && bytes <= limits_.total_bytes_max) continue;
      TRY(remove_file(file.path));
      log(expired ? Level::info : Level::warning, "observe", "removed a file of the audit log",
          {{"file", file.path}, {"why", expired ? "retention" : "the size limit of the log"}});
    }
    return ok();
  }

  size_t failed(const Error& error) {
    descriptor_.reset();
    log(Level::error, "observe", "cannot write the audit log; retrying", {{"why", error.message}});
    return 0;
  }

  const std::string directory_;
  const AuditLimits limits_;

  // Used by the writer's thread only.
  AuditFile current_;
  uint64_t length_ = 0;
  std::string digest_ = first_digest();
  std::optional<Descriptor> descriptor_;

  Mutex mutex_;
  ConditionVariable wake_;      // wakes the writer
  ConditionVariable progress_;  // wakes flush(), and append() that waits for space
  std::vector<Queued> queue_ GUARDED_BY(mutex_);
  // records that the writer has taken but not yet written
  size_t in_writing_ GUARDED_BY(mutex_) = 0;
  uint64_t appended_ GUARDED_BY(mutex_) = 0;
  uint64_t written_ GUARDED_BY(mutex_) = 0;
  int flushing_ GUARDED_BY(mutex_) = 0;
  bool urgent_ GUARDED_BY(mutex_) = false;  // the queue has a record that may not be dropped
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

// The lines left for a lookup: all in files with lower numbers, and the first `length` bytes of
// `file`.
struct Position {
  uint64_t file = UINT64_MAX, length = UINT64_MAX;
};

Result<Position> parse_token(const std::string& token) {
  if (token.empty()) return Position{};
  const size_t slash = token.find('/');
  const auto file = parse_int(token.substr(0, slash));
  const auto length =
      parse_int(slash == std::string::npos ? "" : std::string_view(token).substr(slash + 1));
  if (!file || !length || *file < 0 || *length < 0)
    return invalid("invalid token: '" + shorten(token, 40) + "'");
  return Position{uint64_t(*file), uint64_t(*length)};
}

bool day_may_match(const std::string& day, const AuditFilter& filter) {
  return !(filter.from && day < day_of(*filter.from)) && !(filter.to && day > day_of(*filter.to));
}

// Takes matching lines from the end of `whole`. Returns the length of the rest.
size_t take_from_end(std::string_view whole, const AuditQuery& query, AuditPage& page) {
  while (!whole.empty() && page.events.size() < query.count_max) {
    const std::string_view line = last_line(whole);
    whole.remove_suffix(line.size() + 1);
    auto event = parse_json(line);
    if (event && matches(*event, query.filter)) page.events.push_back(std::move(*event));
  }
  return whole.size();
}

Result<AuditPage> FileAuditLog::lookup(const AuditQuery& query) {
  const Position position = TRY(parse_token(query.token));
  const auto files = TRY(list_files(directory_));
  AuditPage page;
  uint64_t read = 0;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (file->number > position.file || !day_may_match(file->day, query.filter)) continue;
    const auto token = [&](uint64_t length) {
      return std::to_string(file->number) + "/" + std::to_string(length);
    };
    if (page.events.size() >= query.count_max || read >= kLookupBytesMax) {
      page.next_token = token(INT64_MAX);
      return page;
    }
    const std::string bytes = TRY(read_all(file->path));
    read += bytes.size();
    std::string_view part = bytes;
    if (file->number == position.file)
      part = part.substr(0, std::min<uint64_t>(position.length, part.size()));
    const size_t left = take_from_end(whole_lines(part), query, page);
    if (left > 0) {
      page.next_token = token(left);
      return page;
    }
  }
  return page;
}

}  // namespace

Result<std::unique_ptr<AuditLog>> open_audit_log(const std::string& directory, AuditLimits limits) {
  auto log = std::make_unique<FileAuditLog>(directory, limits);
  TRY(log->start());
  return std::unique_ptr<AuditLog>(std::move(log));
}

Result<AuditVerification> verify_audit_log(const std::string& directory) {
  const auto files = TRY(list_files(directory));
  if (files.empty()) return not_found("audit log not found in " + directory);
  AuditVerification found{.files = files.size(), .from_beginning = files[0].number == 1};
  AuditChain chain(found.from_beginning ? std::optional(first_digest()) : std::nullopt);
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0 && files[i].number != files[i - 1].number + 1)
      return corrupt(files[i].path + ": the previous file is missing");
    const std::string bytes = TRY(read_all(files[i].path));
    std::string_view left = whole_lines(bytes);
    const bool torn = left.size() != bytes.size();
    if (torn && i + 1 < files.size())
      return corrupt(files[i].path + ": the last line is incomplete");
    found.torn = torn;
    for (uint64_t number = 1; !left.empty(); ++number) {
      const size_t end = left.find('\n');
      TRY(chain.check(left.substr(0, end)).in(files[i].path + ", line " + std::to_string(number)));
      left.remove_prefix(end + 1);
    }
  }
  found.records = chain.lines();
  found.digest = chain.digest().value_or("");
  return found;
}

}  // namespace trainyard::observe

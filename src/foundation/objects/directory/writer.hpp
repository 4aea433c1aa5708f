// Writes the file of an object or a part, completely or not at all.
//
// Threads: confined to one. Errors: those of files and of checksum.hpp. Lifetime: the disk outlives
// the file and the writer.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "objects/checksum.hpp"
#include "objects/directory.hpp"
#include "objects/directory/readers.hpp"
#include "objects/directory/record.hpp"
#include "objects/objects.hpp"
#include "objects/storage_use.hpp"
#include "os/disk.hpp"

namespace trainyard::objects {

// TemporaryFile is a file in temporary/. Its destructor removes it, unless it was moved away.
class TemporaryFile {
 public:
  static Result<TemporaryFile> make(std::string path, const os::Disk& disk) {
    auto file = TRY(disk.create(path, O_WRONLY | O_CREAT | O_EXCL));
    return TemporaryFile(std::move(path), std::move(file), disk);
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::move(other.file_)), disk_(other.disk_) {
    other.path_.clear();
  }
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  void moved_away() { path_.clear(); }

  Result<void> write(std::span<const char> bytes) {
    return disk_.write(file_, {bytes.data(), bytes.size()}, path_);
  }
  Result<void> sync() { return disk_.sync(file_, path_); }

 private:
  TemporaryFile(std::string path, os::File file, const os::Disk& disk)
      : path_(std::move(path)), file_(std::move(file)), disk_(disk) {}
  std::string path_;
  os::File file_;
  const os::Disk& disk_;
};

// Copies the file of an object with other tags. The bytes are not verified here, but when they are
// read.
inline Result<void> copy_with_tags(const Opened& from,
                                   const std::map<std::string, std::string>& tags,
                                   TemporaryFile& to, const CheckDiskSpace& check_disk_space) {
  constexpr size_t kCopyBufferBytes = 1 << 20;
  std::vector<char> buffer(kCopyBufferBytes);
  const uint64_t bytes = body_bytes(from.record);
  for (uint64_t at = 0; at < bytes;) {
    if (at % kSpaceCheckBytes < kCopyBufferBytes) TRY(check_disk_space());
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - at);
    const size_t got =
        TRY(read_at(from.file, std::span(buffer).first(want), at, from.record.info.key));
    TRY(to.write(std::span(buffer).first(got)));
    at += got;
  }
  Record record = from.record;
  record.info.tags = tags;
  TRY(to.write(encode_record(record)));
  return to.sync();
}

// FileWriter writes the file of an object or a part. `install` moves the file to its path, and
// makes that durable.
class FileWriter final : public Writer {
 public:
  using Install = std::function<Result<void>(const std::string& file)>;

  FileWriter(Clock& clock, std::string key, PutOptions options, ContentCheck check,
             TemporaryFile file, Install install, CheckDiskSpace check_disk_space,
             StorageUse::Charge charge)
      : clock_(clock),
        key_(std::move(key)),
        options_(std::move(options)),
        content_check_(std::move(check)),
        file_(std::move(file)),
        install_(std::move(install)),
        check_disk_space_(std::move(check_disk_space)),
        charge_(std::move(charge)),
        charged_bytes_(options_.bytes.value_or(0)) {}

  Result<void> write(std::span<const char> bytes) override {
    unchecked_bytes_ += bytes.size();
    if (unchecked_bytes_ >= kSpaceCheckBytes) {
      TRY(check_disk_space_());
      unchecked_bytes_ = 0;
    }
    // Charges bytes beyond the declared length.
    written_bytes_ += bytes.size();
    if (written_bytes_ > charged_bytes_) {
      TRY(charge_.add(written_bytes_ - charged_bytes_, 0));
      charged_bytes_ = written_bytes_;
    }
    content_check_.add(bytes);
    return file_.write(bytes);
  }
  void expect_checksum(std::string algorithm, std::string base64) override {
    content_check_.expect(std::move(algorithm), std::move(base64));
  }
  Result<ObjectInfo> commit() override {
    auto kept = TRY(content_check_.finish());
    Record record;
    record.info = {key_,
                   kept.bytes,
                   kept.etag,
                   clock_.now(),
                   options_.content_type,
                   options_.headers,
                   options_.metadata,
                   kept.checksums,
                   options_.owner,
                   options_.tags};
    TRY(file_.write(encode_record(record)));
    TRY(file_.sync());
    TRY(install_(file_.path()));
    charge_.keep();
    file_.moved_away();
    return record.info;
  }

 private:
  Clock& clock_;
  const std::string key_;
  const PutOptions options_;
  ContentCheck content_check_;
  TemporaryFile file_;
  const Install install_;
  const CheckDiskSpace check_disk_space_;
  uint64_t unchecked_bytes_ = 0;  // written since the last check_disk_space_()
  StorageUse::Charge charge_;     // the usage of the file
  uint64_t charged_bytes_, written_bytes_ = 0;
};

}  // namespace trainyard::objects

#include "images/record_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::images {
namespace {

constexpr uint32_t kMagic = 0xced7230a;
constexpr size_t kHeadBytes = 8;
constexpr uint32_t kLengthMask = (1u << 29) - 1;
constexpr size_t kMagicBytes = 4;

struct Head {
  uint32_t flag = 0;
  uint64_t length = 0;
  uint64_t padded() const { return (length + 3) / 4 * 4; }
};

Result<std::string> read_at(const os::File& file, uint64_t offset, size_t bytes) {
  std::string read(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count =
        ::pread(file.descriptor(), read.data() + done, bytes - done, off_t(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return from_errno("reading a record");
    if (count == 0) return corrupt("the file ends within a record");
    done += size_t(count);
  }
  return read;
}

Result<Head> read_head(const os::File& file, uint64_t offset) {
  const std::string bytes = TRY(read_at(file, offset, kHeadBytes));
  if (little_endian_u32(bytes) != kMagic)
    return corrupt("byte " + std::to_string(offset) + " does not begin a record: it is not " +
                   "RecordIO's magic");
  const uint32_t word = little_endian_u32(std::string_view(bytes).substr(4));
  const Head head{word >> 29, word & kLengthMask};
  if (head.flag > 3)
    return corrupt("a record's flag at byte " + std::to_string(offset) + " is " +
                   std::to_string(head.flag));
  return head;
}

}  // namespace

Result<RecordFile> RecordFile::open(const std::string& path) {
  RecordFile file;
  file.path_ = path;
  file.file_ = os::File(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.file_) return from_errno("opening " + path);
  TRY(file.index().in(path));
  return file;
}

Result<void> RecordFile::index() {
  struct stat found {};
  if (::fstat(file_.descriptor(), &found) != 0) return from_errno("reading the file's size");
  if (!S_ISREG(found.st_mode)) return invalid("not a regular file");
  const auto size = uint64_t(found.st_size);
  std::optional<Span> split;  // a record whose last part has not been read yet
  for (uint64_t at = 0; at < size;) {
    const Head head = TRY(read_head(file_, at));
    const bool begins = head.flag == 0 || head.flag == 1;
    if (begins == split.has_value())
      return corrupt("byte " + std::to_string(at) +
                     (begins ? ": a record begins within another" : ": a part has no beginning"));
    Span span = split.value_or(Span{at, 0, 0});
    span.bytes += head.length + (split ? kMagicBytes : 0);
    ++span.parts;
    if (span.bytes > kRecordBytesMax)
      return exhausted("the record at byte " + std::to_string(span.begin) + " is longer than " +
                       human_bytes(kRecordBytesMax));
    at += kHeadBytes + head.padded();
    if (at > size) return corrupt("the file ends within a record");
    split.reset();
    if (head.flag == 1 || head.flag == 2) {
      split = span;
      continue;
    }
    if (records_.size() == kRecordsMax)
      return exhausted("more than " + std::to_string(kRecordsMax) + " records");
    records_.push_back(span);
  }
  if (split) return corrupt("the file ends within a record");
  return ok();
}

Result<std::string> RecordFile::read(size_t record) const {
  CHECK(record < records_.size(), "the record exists");
  return read_start(record, records_[record].bytes);
}

Result<std::string> RecordFile::read_start(size_t record, size_t bytes) const {
  CHECK(record < records_.size(), "the record exists");
  const Span& span = records_[record];
  bytes = std::min<uint64_t>(bytes, span.bytes);
  std::string joined;
  uint64_t at = span.begin;
  for (uint32_t part = 0; part < span.parts && joined.size() < bytes; ++part) {
    const Head head = TRY(read_head(file_, at).in(path_));
    if (part > 0) append_little_endian(joined, kMagic, kMagicBytes);
    // The file may have changed since it was indexed, so at most the indexed size is read.
    const size_t wanted = std::min<uint64_t>(head.length, bytes - std::min(bytes, joined.size()));
    joined += TRY(read_at(file_, at + kHeadBytes, wanted).in(path_));
    at += kHeadBytes + head.padded();
  }
  joined.resize(std::min(joined.size(), bytes));
  return joined;
}

}  // namespace trainyard::images

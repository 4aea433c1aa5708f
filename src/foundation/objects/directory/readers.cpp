#include "objects/directory/readers.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/check.hpp"
#include "objects/names.hpp"

namespace trainyard::objects {
namespace {

bool is_whole(const Range& range, uint64_t bytes) {
  return range.first == 0 && range.last + 1 == bytes;
}

class FileReader final : public Reader {
 public:
  FileReader(Opened opened, Range range)
      : file_(std::move(opened.file)),
        info_(std::move(opened.record.info)),
        range_(range),
        at_(range.first) {
    if (is_whole(range, info_.bytes)) verifier_.emplace(cheapest_checksum(info_, EtagUse::compare));
  }
  const ObjectInfo& info() const override { return info_; }
  Range range() const override { return range_; }
  Result<size_t> read(std::span<char> buffer) override {
    const uint64_t left = range_.last + 1 - at_;
    if (left == 0) return size_t(0);
    const size_t bytes =
        TRY(read_at(file_, buffer.first(std::min<uint64_t>(buffer.size(), left)), at_, info_.key));
    at_ += bytes;
    if (verifier_) {
      verifier_->add(buffer.first(bytes));
      if (bytes == left) TRY(verifier_->finish().in("reading " + info_.key));
    }
    return bytes;
  }

 private:
  const os::File file_;
  const ObjectInfo info_;
  const Range range_;
  std::optional<Verifier> verifier_;
  uint64_t at_;
};

class PartsReader final : public Reader {
 public:
  PartsReader(ObjectInfo info, std::vector<PartInfo> parts, PartsPaths paths, Range range)
      : info_(std::move(info)),
        parts_(std::move(parts)),
        paths_(std::move(paths)),
        range_(range),
        at_(range.first) {}
  const ObjectInfo& info() const override { return info_; }
  Range range() const override { return range_; }
  std::vector<PartInfo> parts() const override { return parts_; }
  Result<std::map<std::string, std::string>> part_checksums(uint32_t number) override {
    const auto part = std::ranges::find(parts_, number, &PartInfo::number);
    CHECK(part != parts_.end(), "the part with this number exists");
    return std::move(TRY(open_part_file(*part)).record.info.checksums);
  }

  Result<size_t> read(std::span<char> buffer) override {
    const uint64_t left = range_.last + 1 - at_;
    if (left == 0) return size_t(0);
    if (!reader_) TRY(open_part());
    const size_t bytes =
        TRY(reader_->read(buffer.first(std::min<uint64_t>(buffer.size(), left)))
                .in("part " + std::to_string(parts_[part_].number) + " of " + info_.key));
    at_ += bytes;
    if (at_ == begin_ + parts_[part_].bytes) {
      reader_.reset();
      begin_ += parts_[part_++].bytes;
    }
    return bytes;
  }

 private:
  // Opens the part that contains byte at_.
  Result<void> open_part() {
    while (at_ >= begin_ + parts_[part_].bytes) begin_ += parts_[part_++].bytes;
    const PartInfo& part = parts_[part_];
    auto opened = TRY(open_part_file(part));
    // A part that is read from its first to its last byte is verified, independently of other
    // parts.
    const Range of_part{at_ - begin_, std::min(range_.last - begin_, part.bytes - 1), {}};
    reader_ = read_file_of(std::move(opened), of_part);
    return ok();
  }
  Result<Opened> open_part_file(const PartInfo& part) const {
    auto opened = find_part_file(part.number);
    if (!opened) return corrupt("opening a part of " + info_.key + ": " + opened.error().message);
    if (opened->record.info.etag != part.etag || opened->record.info.bytes != part.bytes)
      return corrupt("reading " + info_.key + ": its part " + std::to_string(part.number) +
                     " has been replaced");
    return opened;
  }
  Result<Opened> find_part_file(uint32_t number) const {
    const std::string name = "/" + part_name(number);
    auto opened = open_recorded(paths_.directory + name);
    if (opened || opened.error().kind != Kind::not_found) return opened;
    opened = open_recorded(paths_.upload + name);
    if (opened || opened.error().kind != Kind::not_found) return opened;
    return open_recorded(paths_.directory + name);  // the parts were moved after the first attempt
  }

  const ObjectInfo info_;
  const std::vector<PartInfo> parts_;
  const PartsPaths paths_;
  const Range range_;
  uint64_t at_;         // offset of the next byte in the object
  size_t part_ = 0;     // index in parts_ of the part with this byte
  uint64_t begin_ = 0;  // offset of this part in the object
  std::unique_ptr<Reader> reader_;
};

}  // namespace

Result<size_t> read_at(const os::File& file, std::span<char> buffer, uint64_t at,
                       const std::string& key) {
  for (;;) {
    const ssize_t read = pread(file.descriptor(), buffer.data(), buffer.size(), off_t(at));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return from_errno("reading " + key);
    if (read == 0) return corrupt("reading " + key + ": its file ended early");
    return size_t(read);
  }
}

Result<Opened> open_recorded(const std::string& path) {
  os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return from_errno("opening " + path);
  Record record = TRY(read_record(file.descriptor(), path));
  return Opened{std::move(file), std::move(record)};
}

std::string part_name(uint32_t part) {
  char name[16];
  std::snprintf(name, sizeof name, "%05u", part);
  return name;
}

std::unique_ptr<Reader> read_file_of(Opened opened, Range range) {
  return std::make_unique<FileReader>(std::move(opened), range);
}

Result<std::unique_ptr<Reader>> read_parts_of(Opened opened, PartsPaths paths,
                                              const std::optional<Range>& range) {
  std::string list(part_list_bytes(opened.record.parts), '\0');
  for (size_t done = 0; done < list.size();)
    done += TRY(read_at(opened.file, std::span(list).subspan(done), done, opened.record.info.key));
  std::vector<PartInfo> parts;
  for (auto& entry : TRY(decode_part_list(list, opened.record.info.bytes)
                             .in("reading " + opened.record.info.key)))
    parts.push_back({entry.number, std::move(entry.etag), entry.bytes, {}, {}});
  const Range resolved = TRY(resolve_range(range, opened.record.info.bytes, parts));
  return std::unique_ptr<Reader>(
      new PartsReader(std::move(opened.record.info), std::move(parts), std::move(paths), resolved));
}

}  // namespace trainyard::objects

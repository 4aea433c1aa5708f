// Reads objects from files: one file, or the parts that it lists. A read of the whole is verified:
// the last bytes are returned only after all of them matched the object's checksum.
//
// Threads: confined to one. Errors: corrupt (too short, or another checksum), and those of files.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "objects/directory/held_parts.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/record.hpp"
#include "objects/directory/verifier.hpp"
#include "objects/objects.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

struct Opened {
  os::File file;
  Record record;
};

// Opens an object's or a part's file. Errors: not_found without a word of `fault`; corrupt.
Result<Opened> open_recorded(const std::string& path);

// Reads at least one byte of a file. `key`: for messages. Errors also: corrupt (the file's end).
Result<size_t> read_at(const os::File& file, std::span<char> buffer, uint64_t at,
                       const std::string& key);

// Counts the reads that fail with corrupt. Lifetime: the counter outlives it.
class CountingReader final : public Reader {
 public:
  CountingReader(std::unique_ptr<Reader> reader, std::atomic<uint64_t>& broken)
      : reader_(std::move(reader)), broken_(broken) {}
  const ObjectInfo& info() const override { return reader_->info(); }
  Range range() const override { return reader_->range(); }
  std::vector<PartInfo> parts() const override { return reader_->parts(); }
  Result<std::map<std::string, std::string>> part_checksums(uint32_t number) override {
    return reader_->part_checksums(number);
  }
  Result<size_t> read(std::span<char> buffer) override {
    auto got = reader_->read(buffer);
    if (!got && got.error().kind == Kind::corrupt) ++broken_;
    return got;
  }

 private:
  const std::unique_ptr<Reader> reader_;
  std::atomic<uint64_t>& broken_;
};

// The name of a part's file.
std::string part_name(uint32_t part);

// Requires: the object is not a list of parts, and the range is resolved.
std::unique_ptr<Reader> read_file_of(Opened opened, Range range);

// The directory of an object's parts, and that of its upload, where they may still be.
struct PartsPaths {
  std::string directory;
  std::string upload;
  HeldParts::Hold hold;  // on directory
};
// Errors: corrupt (the list), and those of resolve_range().
Result<std::unique_ptr<Reader>> read_parts_of(Opened opened, PartsPaths place,
                                              const std::optional<Range>& range);

}  // namespace trainyard::objects

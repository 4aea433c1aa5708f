// Reads objects from files: from one file, or from the parts that it lists. A read of a whole
// object is verified: its last bytes are returned only after all bytes matched the object's
// checksum.
//
// Threads: confined to one. Errors: corrupt (the file is too short, or the checksum differs), and
// those of files.
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
#include "objects/objects.hpp"
#include "objects/verifier.hpp"
#include "os/files.hpp"

namespace trainyard::objects {

struct Opened {
  os::File file;
  Record record;
};

// Opens the file of an object or a part. Errors: not_found without a Fault; corrupt.
Result<Opened> open_recorded(const std::string& path);

// Reads at least one byte of a file from offset `at`. `key` is for messages. Errors also: corrupt,
// at the end of the file.
Result<size_t> read_at(const os::File& file, std::span<char> buffer, uint64_t at,
                       const std::string& key);

// CountingReader forwards to another reader, and counts in `broken` the reads that fail with
// corrupt. Lifetime: the counter outlives it.
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

// Returns the name of the file of a part.
std::string part_name(uint32_t part);

// Reads an object that is one file. Requires: the range is resolved (resolve_range()).
std::unique_ptr<Reader> read_file_of(Opened opened, Range range);

// The directory of the parts of an object, and the directory of its upload, where the parts may
// still be.
struct PartsPaths {
  std::string directory;
  std::string upload;
  HeldParts::Hold hold;  // on directory
};
// Reads an object that is a list of parts. Errors: corrupt (the list), and those of
// resolve_range().
Result<std::unique_ptr<Reader>> read_parts_of(Opened opened, PartsPaths paths,
                                              const std::optional<Range>& range);

}  // namespace trainyard::objects

// A RecordFile reads records of a RecordIO file by number.
//
//   magic 0xced7230a | flag << 29 | length      two u32, little endian
//   payload          | zeros up to a multiple of 4
//
// flag 0 is a whole record; 1, 2, 3 are the first, middle and last part of a record that was split
// where it contains the magic, which is omitted between two parts. Opening reads only the headers
// of records.
//
// Threads: read() and read_start() from any thread; the rest confined to one. Errors: those of
// files; corrupt, naming the position; exhausted, beyond the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::images {

inline constexpr uint64_t kRecordBytesMax = uint64_t{128} << 20;
// records of one file; 24 bytes of memory each
inline constexpr size_t kRecordsMax = size_t{1} << 28;

class RecordFile {
 public:
  static Result<RecordFile> open(const std::string& path);

  size_t size() const { return records_.size(); }
  // Requires: record < size().
  Result<std::string> read(size_t record) const;
  // Reads at most the first `bytes` bytes of a record.
  Result<std::string> read_start(size_t record, size_t bytes) const;
  const std::string& path() const { return path_; }

 private:
  struct Span {
    uint64_t begin = 0;  // position of the header of the first part
    uint64_t bytes = 0;  // size of the record
    uint32_t parts = 0;
  };
  Result<void> index();

  std::string path_;
  os::File file_;
  std::vector<Span> records_;
};

}  // namespace trainyard::images

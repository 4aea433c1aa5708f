// Encodes and decodes the record (JSON) that follows the bytes of an object in its file, and the
// tail of the file, which locates the record. Grammar: docs/formats/objects.md.
//
// Threads: pure except for read_record. Errors: corrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct Record {
  ObjectInfo info;
  std::string upload_id;  // the upload that made the object; "": a plain put
  // Number of parts, whose files are in the directory parts/ID; 0: the bytes are in this file.
  uint32_t parts = 0;
};

// Returns the number of bytes before the record: of the object, or of its list of parts.
uint64_t body_bytes(const Record& record);

inline constexpr size_t kTailBytes = 24;
// the limits of check_options(), with every byte escaped, and a margin
inline constexpr size_t kRecordBytesMax = 256 << 10;

// Returns the record and the tail, to be written after the bytes of the object.
std::string encode_record(const Record& record);
// Decodes the end of a file. Returns nullopt if `end` is too short: call again with the last
// kRecordBytesMax + kTailBytes of the file.
Result<std::optional<Record>> decode_record(std::string_view end, uint64_t file_bytes);

// Reads the record of an open file; `path` is for error messages.
Result<Record> read_record(int descriptor, const std::string& path);

}  // namespace trainyard::objects

// Encodes the record (JSON) behind an object's bytes in its file, and the tail by which it is
// found.
// Grammar: docs/formats/objects.md.
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
  std::string upload_id;  // of its upload; "" for a plain put
  // Number of parts, which lie in the directory of the upload; 0: the bytes are in the file.
  uint32_t parts = 0;
};

// Returns the bytes before the record: the object's, or those of its list of parts.
uint64_t body_bytes(const Record& record);

inline constexpr size_t kTailBytes = 24;
inline constexpr size_t kRecordBytesMax =
    256 << 10;  // the limits of check_options, with every byte escaped, and a margin

// Returns record and tail, to be written behind the object's bytes.
std::string encode_record(const Record& record);
// Decodes the end of a file. Nothing: `end` is too short; call again with kRecordBytesMax +
// kTailBytes.
Result<std::optional<Record>> decode_record(std::string_view end, uint64_t file_bytes);

// Reads the record of an open file; `path` is for error messages.
Result<Record> read_record(int descriptor, const std::string& path);

}  // namespace trainyard::objects

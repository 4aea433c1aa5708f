// What stands behind an object's bytes in its file: the record (JSON) and the tail that finds it.
// Grammar: docs/formats/objects.md.
//
// Threads: pure but for read_record. Errors: corrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct Record {
  ObjectInfo info;
  std::string upload_id;  // of the upload that it was; "" of a plain put
  // Of an object that is a list of parts, which lie in the directory of its upload; 0: the bytes are in the file.
  uint32_t parts = 0;
};

// How many bytes stand before the record: the object's, or those of its list of parts.
uint64_t body_bytes(const Record& record);

inline constexpr size_t kTailBytes = 24;
inline constexpr size_t kRecordBytesMax =
    256 << 10;  // what check_options allows, with every byte escaped, and room

// Record and tail, to be written behind the object's bytes.
std::string encode_record(const Record& record);
// From the file's last bytes. Nothing: `end` does not reach back far enough, ask again with kRecordBytesMax +
// kTailBytes.
Result<std::optional<Record>> decode_record(std::string_view end, uint64_t file_bytes);

// Of an open file; `path` is for the error's words.
Result<Record> read_record(int descriptor, const std::string& path);

}  // namespace trainyard::objects

// Writes and reads RecordIO, the format of MXNet's and dmlc's readers:
//
//   magic 0xced7230a | flag << 29 | length      two u32, little endian; length < 2^29
//   payload          | zeros up to a multiple of 4
//
// flag 0 marks a whole record. A record whose payload contains the magic at a multiple of 4 may be
// split there: flags 1, 2 and 3 mark its first, middle and last part, and the magic between two
// parts is omitted. SageMaker's readers never join parts, so records are always written whole. Both
// forms are read.
//
// Threads: pure; a decoder is confined to one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

inline constexpr uint32_t kRecordMagic = 0xced7230a;
inline constexpr uint64_t kRecordBytesMax = (1u << 29) - 1;
inline constexpr size_t kRecordHeadBytes = 8;

// Requires: bytes <= kRecordBytesMax.
std::array<char, kRecordHeadBytes> record_head(uint64_t bytes);
// Returns the number of zeros after a payload.
size_t record_padding(uint64_t bytes);

// Decodes records from bytes that arrive in pieces of any size.
class RecordDecoder {
 public:
  // `record_bytes_max`: longer records are rejected before they use memory.
  explicit RecordDecoder(size_t record_bytes_max) : record_bytes_max_(record_bytes_max) {}
  void push(std::string_view bytes) { buffer_.append(bytes); }
  // Returns the next whole record; nullopt if more bytes are needed. Errors: corrupt; exhausted, if
  // the record is too long.
  Result<std::optional<std::string>> next();
  // Checks that the bytes end after a whole record. Errors: corrupt.
  Result<void> finish() const;

 private:
  Result<void> take_part(uint32_t flag, std::string_view payload);

  const size_t record_bytes_max_;
  std::string buffer_;
  size_t at_ = 0;                     // number of bytes of buffer_ that were decoded
  std::optional<std::string> split_;  // the parts so far of a split record
};

}  // namespace trainyard

// FormDataReader decodes multipart/form-data (RFC 7578) incrementally, in pieces of any size: first
// the fields, then the bytes of one file.
//
//   body  := part* closing          the first part named "file" is the file; everything after it is
//                                   ignored, as in S3
//   part  := "--" boundary CRLF head CRLF CRLF bytes CRLF
//
//   FormDataReader reader(*boundary_of(content_type));
//   while (!reader.at_file()) TRY(reader.feed(next_bytes, file));   // fields() are complete
//   ..   // further calls of feed() append the file's bytes
//
// Threads: one at a time.
// Errors:  invalid (framing), exhausted (fields larger than kFormFieldsBytesMax, or more than
//          kFormFieldsMax).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/rest_xml.hpp"

namespace trainyard::api {

inline constexpr size_t kFormFieldsBytesMax = 20'480;  // names and values before the file, as in S3
inline constexpr size_t kFormFieldsMax = 100;          // S3's longest documented form has 20
inline constexpr size_t kFormPartHeadBytesMax = 4'096;
inline constexpr size_t kFormBoundaryBytesMax = 70;  // RFC 2046

// Returns the boundary in a Content-Type "multipart/form-data; boundary=.."; nothing for another
// type or an invalid boundary.
std::optional<std::string> boundary_of(std::string_view content_type);

class FormDataReader {
 public:
  explicit FormDataReader(std::string_view boundary);

  // Decodes the next bytes of the body, and appends the file's bytes to `file`.
  Result<void> feed(std::string_view bytes, std::string& file);

  // Returns whether the file has begun. The fields are then complete.
  bool at_file() const { return state_ == State::file || state_ == State::ended; }
  // Returns whether the file is complete.
  bool finished() const { return state_ == State::ended; }

  // The fields in the order of arrival, with unique names in lower case.
  const NameValues& fields() const { return fields_; }
  // The file's name without directories; "" if the client sent none.
  const std::string& file_name() const { return file_name_; }
  const std::string& file_type() const { return file_type_; }  // Content-Type of the part

 private:
  enum class State { begin, after_boundary, head, value, file, ended };

  Result<bool> step(std::string& file);
  Result<bool> decode_begin();
  Result<bool> decode_boundary_end();
  Result<bool> decode_head();
  Result<bool> decode_value();
  void decode_file(std::string& file);
  Result<void> count(size_t bytes);

  const std::string delimiter_;  // CRLF "--" boundary
  State state_ = State::begin;
  std::string pending_;  // not decoded yet; in the file, at most the beginning of a delimiter
  std::string name_;
  NameValues fields_;
  size_t fields_bytes_ = 0;
  std::string file_name_, file_type_;
};

}  // namespace trainyard::api

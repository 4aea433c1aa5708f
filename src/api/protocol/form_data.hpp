// Decodes multipart/form-data (RFC 7578) as it arrives: fields first, then the bytes of one file, in pieces of any size.
//
//   body  := part* closing          the first part that is named "file" is the file; what follows it is ignored, as by S3
//   part  := "--" boundary CRLF head CRLF CRLF bytes CRLF
//
//   FormDataReader reader(*boundary_of(content_type));
//   while (!reader.at_file()) TRY(reader.feed(next_bytes, file));   // fields() are complete
//   ..                                                              // feed() goes on to append the file's bytes
//
// Threads: confined to one at a time.
// Errors:  invalid (framing), exhausted (fields larger than kFormFieldsBytesMax, or more than kFormFieldsMax).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/rest_xml.hpp"

namespace trainyard::api {

inline constexpr size_t kFormFieldsBytesMax = 20'480;  // names and values in front of the file, as S3
inline constexpr size_t kFormFieldsMax = 100;          // S3's longest documented form has twenty
inline constexpr size_t kFormPartHeadBytesMax = 4'096;
inline constexpr size_t kFormBoundaryBytesMax = 70;  // RFC 2046

// The boundary of a Content-Type "multipart/form-data; boundary=..". Nothing: another type, or no valid boundary.
std::optional<std::string> boundary_of(std::string_view content_type);

class FormDataReader {
 public:
  explicit FormDataReader(std::string_view boundary);

  // Takes the next bytes of the body and appends those of the file to `file`.
  Result<void> feed(std::string_view bytes, std::string& file);

  // The file's part has begun: the fields are complete.
  bool at_file() const { return state_ == State::file || state_ == State::ended; }
  // The file is complete.
  bool finished() const { return state_ == State::ended; }

  // Names in lower case, in the order of arrival; none twice.
  const NameValues& fields() const { return fields_; }
  // The name that the client gave to the file, without directories; "" when it gave none.
  const std::string& file_name() const { return file_name_; }
  const std::string& file_type() const { return file_type_; }  // Content-Type of the part

 private:
  enum class State { begin, behind_boundary, head, value, file, ended };

  Result<bool> step(std::string& file);
  Result<bool> take_begin();
  Result<bool> take_boundary_end();
  Result<bool> take_head();
  Result<bool> take_value();
  void take_file(std::string& file);
  Result<void> count(size_t bytes);

  const std::string delimiter_;  // CRLF "--" boundary
  State state_ = State::begin;
  std::string pending_;  // not decoded yet; of a file, at most what may begin a delimiter
  std::string name_;
  NameValues fields_;
  size_t fields_bytes_ = 0;
  std::string file_name_, file_type_;
};

}  // namespace trainyard::api

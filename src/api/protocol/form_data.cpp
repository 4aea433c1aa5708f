#include "protocol/form_data.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kType = "multipart/form-data";
constexpr std::string_view kLineEnd = "\r\n", kHeadEnd = "\r\n\r\n";

// RFC 2046 defines the characters and the length.
bool is_boundary(std::string_view text) {
  if (text.empty() || text.size() > kFormBoundaryBytesMax || text.back() == ' ') return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("'()+_,-./:=? ").find(char(c)) != std::string_view::npos;
  });
}

// Returns the value of a parameter in `; a=b; c="d;e"`, without quotes; nothing if the parameter is
// absent or unterminated. A backslash escapes a quote or a backslash.
std::optional<std::string> parameter(std::string_view text, std::string_view name) {
  for (size_t at = text.find(';'); at != std::string_view::npos;) {
    const size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = trim(text.substr(at + 1, equals - at - 1));
    std::string value;
    size_t next = equals + 1;
    if (next < text.size() && text[next] == '"') {
      for (++next; next < text.size() && text[next] != '"'; ++next) {
        // A backslash before another character is literal: some clients send a file's path.
        const char following = next + 1 < text.size() ? text[next + 1] : ' ';
        if (text[next] == '\\' && (following == '\\' || following == '"')) ++next;
        value += text[next];
      }
      if (next == text.size()) return std::nullopt;
    } else {
      value = trim(text.substr(next, text.find(';', next) - next));
    }
    if (equals_ignoring_case(key, name)) return value;
    at = text.find(';', next);
  }
  return std::nullopt;
}

// Some clients send the full path of the file.
std::string without_directories(const std::string& path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::optional<std::string> boundary_of(std::string_view content_type) {
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  if (!equals_ignoring_case(type, kType)) return std::nullopt;
  auto boundary = parameter(content_type, "boundary");
  if (!boundary || !is_boundary(*boundary)) return std::nullopt;
  return boundary;
}

FormDataReader::FormDataReader(std::string_view boundary)
    : delimiter_(std::string("\r\n--").append(boundary)) {}

Result<void> FormDataReader::feed(std::string_view bytes, std::string& file) {
  if (state_ == State::ended) return ok();
  pending_.append(bytes);
  while (TRY(step(file))) {
  }
  return ok();
}

// Returns true if there may be more to decode.
Result<bool> FormDataReader::step(std::string& file) {
  switch (state_) {
    case State::begin:
      return decode_begin();
    case State::after_boundary:
      return decode_boundary_end();
    case State::head:
      return decode_head();
    case State::value:
      return decode_value();
    case State::file:
      decode_file(file);
      return false;
    case State::ended:
      break;
  }
  return false;
}

// Decodes the first delimiter, which has no line end before it.
Result<bool> FormDataReader::decode_begin() {
  const std::string_view first = std::string_view(delimiter_).substr(kLineEnd.size());
  const size_t count = std::min(first.size(), pending_.size());
  if (pending_.compare(0, count, first, 0, count) != 0)
    return invalid("the form does not begin with its boundary");
  if (count < first.size()) return false;
  pending_.erase(0, first.size());
  state_ = State::after_boundary;
  return true;
}

Result<bool> FormDataReader::decode_boundary_end() {
  if (pending_.size() < kLineEnd.size()) return false;
  if (pending_.starts_with("--"))
    return invalid("the form has no file: its last field must be named file");
  if (!pending_.starts_with(kLineEnd))
    return invalid("a boundary of the form is not followed by a line end or --");
  // The line end is kept: it begins the end of the head if the part has no header lines.
  state_ = State::head;
  return true;
}

Result<bool> FormDataReader::decode_head() {
  const size_t end = pending_.find(kHeadEnd);
  const size_t known = end == std::string::npos ? pending_.size() : end + kHeadEnd.size();
  if (known > kFormPartHeadBytesMax + kHeadEnd.size())
    return exhausted("a part of the form has headers of more than " +
                     std::to_string(kFormPartHeadBytesMax) + " bytes");
  if (end == std::string::npos) return false;
  std::string type;
  std::optional<std::string> name, file_name;
  for (const auto line : split(std::string_view(pending_).substr(0, end), '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
    if (equals_ignoring_case(key, "content-type")) type = value;
    if (!equals_ignoring_case(key, "content-disposition")) continue;
    if (!equals_ignoring_case(trim(value.substr(0, value.find(';'))), "form-data"))
      return invalid("a part of the form must have the Content-Disposition form-data");
    name = parameter(value, "name");
    file_name = parameter(value, "filename");
  }
  if (!name || name->empty() || !is_utf8(*name))
    return invalid("a part of the form needs a name in UTF-8 in its Content-Disposition");
  pending_.erase(0, end + kHeadEnd.size());
  name_ = to_lower(*name);
  if (name_ != "file") {
    TRY(count(name_.size()));
    state_ = State::value;
    return true;
  }
  file_name_ = without_directories(file_name.value_or(""));
  if (!is_utf8(file_name_)) return invalid("the name of the file is not UTF-8");
  file_type_ = std::move(type);
  state_ = State::file;
  return true;
}

Result<void> FormDataReader::count(size_t bytes) {
  fields_bytes_ += bytes;
  if (fields_bytes_ > kFormFieldsBytesMax)
    return exhausted("the fields of the form are larger than " +
                     std::to_string(kFormFieldsBytesMax) + " bytes");
  return ok();
}

Result<bool> FormDataReader::decode_value() {
  const size_t end = pending_.find(delimiter_);
  const size_t known = end == std::string::npos ? pending_.size() : end;
  if (known > kFormFieldsBytesMax + delimiter_.size()) TRY(count(known));
  if (end == std::string::npos) return false;
  TRY(count(end));
  std::string value = pending_.substr(0, end);
  if (!is_utf8(value)) return invalid("the field '" + shorten(name_, 60) + "' is not UTF-8");
  if (fields_.size() == kFormFieldsMax)
    return exhausted("the form has more than " + std::to_string(kFormFieldsMax) + " fields");
  if (std::any_of(fields_.begin(), fields_.end(),
                  [&](const auto& field) { return field.first == name_; }))
    return invalid("the field '" + shorten(name_, 60) + "' occurs twice");
  fields_.emplace_back(std::move(name_), std::move(value));
  pending_.erase(0, end + delimiter_.size());
  state_ = State::after_boundary;
  return true;
}

// Appends all bytes to the file except those that may begin a delimiter.
void FormDataReader::decode_file(std::string& file) {
  const size_t end = pending_.find(delimiter_);
  if (end != std::string::npos) {
    file.append(pending_, 0, end);
    pending_.clear();
    state_ = State::ended;
    return;
  }
  const size_t kept = std::min(pending_.size(), delimiter_.size() - 1);
  file.append(pending_, 0, pending_.size() - kept);
  pending_.erase(0, pending_.size() - kept);
}

}  // namespace trainyard::api

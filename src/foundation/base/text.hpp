// Converts, splits and joins text: hex, base64, percent-encoding, numbers, human-readable sizes.
//
// Threads: pure functions. Errors: invalid, with the text (shortened) that cannot be decoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard {

std::string to_hex(std::string_view bytes);
Result<std::string> from_hex(std::string_view text);
std::string to_base64(std::string_view bytes);
Result<std::string> from_base64(std::string_view text);

// Encodes all bytes except A-Z a-z 0-9 - . _ ~ as %XX (RFC 3986); also keeps '/' if keep_slash.
std::string percent_encode(std::string_view text, bool keep_slash = false);
// Decodes '+' as a blank if plus_is_blank (form bodies).
Result<std::string> percent_decode(std::string_view text, bool plus_is_blank = false);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// Returns the texts in order, with the separator between them.
template <class Texts = std::vector<std::string>>
std::string join(const Texts& texts, std::string_view separator) {
  std::string joined;
  bool first = true;
  for (const auto& text : texts) {
    if (!first) joined += separator;
    joined += text;
    first = false;
  }
  return joined;
}

// Convert the letters of ASCII, in every locale; other bytes stay.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

// Parses the whole text as a decimal number. Errors: invalid, also on overflow.
Result<int64_t> parse_int(std::string_view text);
Result<double> parse_double(std::string_view text);

// Truncates text to at most `bytes_max` bytes, at a UTF-8 boundary, and appends "..." if it was
// longer.
std::string shorten(std::string_view text, size_t bytes_max);
bool is_utf8(std::string_view text);
// Counts the code points. Requires: well-formed UTF-8.
size_t count_characters(std::string_view text);
// Replaces every ill-formed UTF-8 sequence by U+FFFD.
std::string to_utf8(std::string_view bytes);

// Formats a size for people: "1.5 GiB", "312 B".
std::string human_bytes(uint64_t bytes);

}  // namespace trainyard

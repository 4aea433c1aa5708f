// Small things done to text: hex, base64, percent-encoding, splitting, numbers, sizes for people.
//
// Threads: pure functions. Errors: what cannot be decoded is `invalid` and names the text (shortened).
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

// RFC 3986: all but A-Z a-z 0-9 - . _ ~ become %XX; '/' is kept when keep_slash.
std::string percent_encode(std::string_view text, bool keep_slash = false);
// '+' becomes a blank only when plus_is_blank (form bodies).
Result<std::string> percent_decode(std::string_view text, bool plus_is_blank = false);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

// The whole text as a decimal number. Errors: invalid, also when it overflows.
Result<int64_t> parse_int(std::string_view text);
Result<double> parse_double(std::string_view text);

// At most `bytes_max` bytes of text, cut at a UTF-8 boundary, "..." at the end when cut.
std::string shorten(std::string_view text, size_t bytes_max);
bool is_utf8(std::string_view text);
// Text with every ill-formed UTF-8 sequence replaced by U+FFFD.
std::string to_utf8(std::string_view bytes);

// "1.5 GiB", "312 B": for people.
std::string human_bytes(uint64_t bytes);

}  // namespace trainyard

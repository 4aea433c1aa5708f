#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace trainyard {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Returns the length of the well-formed UTF-8 sequence at text[at], or 0 (RFC 3629; Unicode, table
// 3-7).
size_t utf8_sequence(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? uint8_t(text[at + i]) : uint8_t(0);
  };
  const auto tail = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const uint8_t b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b == 0xe0) return tail(1, 0xa0) && tail(2) ? 3 : 0;
  if (b == 0xed) return tail(1, 0x80, 0x9f) && tail(2) ? 3 : 0;
  if (b >= 0xe1 && b <= 0xef) return tail(1) && tail(2) ? 3 : 0;
  if (b == 0xf0) return tail(1, 0x90) && tail(2) && tail(3) ? 4 : 0;
  if (b >= 0xf1 && b <= 0xf3) return tail(1) && tail(2) && tail(3) ? 4 : 0;
  if (b == 0xf4) return tail(1, 0x80, 0x8f) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

// Returns the end of the run of ASCII at `at`. Compares eight bytes per step, since most text is
// ASCII.
size_t ascii_end(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (at < text.size() && uint8_t(text[at]) < 0x80) ++at;
  return at;
}

// Returns the end of the run of well-formed UTF-8 at `at`.
size_t utf8_end(std::string_view text, size_t at) {
  while ((at = ascii_end(text, at)) < text.size()) {
    const size_t size = utf8_sequence(text, at);
    if (size == 0) break;
    at += size;
  }
  return at;
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kHex[uint8_t(c) >> 4];
    text += kHex[uint8_t(c) & 15];
  }
  return text;
}

Result<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return invalid("'" + shorten(text, 40) + "' is not hex: odd length");
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return invalid("'" + shorten(text, 40) + "' is not hex");
    bytes += char(high << 4 | low);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = uint32_t(uint8_t(bytes[i])) << 16;
    if (left > 1) word |= uint32_t(uint8_t(bytes[i + 1])) << 8;
    if (left > 2) word |= uint8_t(bytes[i + 2]);
    text += kBase64[word >> 18];
    text += kBase64[word >> 12 & 63];
    text += left > 1 ? kBase64[word >> 6 & 63] : '=';
    text += left > 2 ? kBase64[word & 63] : '=';
  }
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  static const auto values = [] {
    std::array<int8_t, 256> table;
    table.fill(-1);
    for (size_t i = 0; i < kBase64.size(); ++i) table[uint8_t(kBase64[i])] = int8_t(i);
    return table;
  }();
  std::string_view digits = text;
  while (!digits.empty() && digits.back() == '=' && text.size() - digits.size() < 2)
    digits.remove_suffix(1);
  if (text.size() % 4 != 0 || digits.size() % 4 == 1)
    return invalid("'" + shorten(text, 40) + "' is not base64");
  std::string bytes;
  bytes.reserve(digits.size() * 3 / 4);
  uint32_t word = 0;
  int bits = 0;
  for (const char c : digits) {
    const int value = values[uint8_t(c)];
    if (value < 0) return invalid("'" + shorten(text, 40) + "' is not base64");
    word = word << 6 | uint32_t(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += char(word >> bits & 255);
    }
  }
  return bytes;
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (unreserved(c) || (keep_slash && c == '/')) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += char(std::toupper(kHex[uint8_t(c) >> 4]));
      encoded += char(std::toupper(kHex[uint8_t(c) & 15]));
    }
  }
  return encoded;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        return invalid("'" + shorten(text, 80) + "' has a broken %XX escape");
      decoded += char(high << 4 | low);
      i += 2;
    }
  }
  return decoded;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return lower;
}

std::string to_upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return upper;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

Result<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return invalid("'" + shorten(text, 40) + "' is not a whole number");
  return value;
}

Result<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    return invalid("'" + shorten(text, 40) + "' is not a number");
  return value;
}

std::string shorten(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  size_t keep = bytes_max > 3 ? bytes_max - 3 : 0;
  while (keep > 0 && (uint8_t(text[keep]) & 0xc0) == 0x80) --keep;
  return std::string(text.substr(0, keep)) + "...";
}

bool is_utf8(std::string_view text) { return utf8_end(text, 0) == text.size(); }

size_t count_characters(std::string_view text) {
  return size_t(
      std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = utf8_end(bytes, at);
    text += bytes.substr(at, end - at);
    if (end < bytes.size()) text += "\xef\xbf\xbd";
    at = end + 1;
  }
  return text;
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value,
                kUnits[unit]);
  return text;
}

}  // namespace trainyard

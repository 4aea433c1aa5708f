#include "remote_write/snappy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes/varint.hpp"

namespace trainyard::remote_write {
namespace {

constexpr size_t kFragmentBytes = 64 << 10;  // the maximum distance of a copy from its source
constexpr size_t kHashBits = 14;
constexpr size_t kCopyBytesMin = 4;
constexpr size_t kCopyBytesMax = 64;  // bytes that one copy element yields
constexpr size_t kShortLiteralMax = 60;

// Tags of elements: the two lowest bits.
enum Tag : uint8_t { kLiteral = 0, kCopy1 = 1, kCopy2 = 2, kCopy4 = 3 };

void append_literal(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t length = bytes.size() - 1;
  if (length < kShortLiteralMax) {
    out += char(length << 2 | kLiteral);
  } else {
    // A fragment is short enough for two bytes of length.
    out += char((kShortLiteralMax + 1) << 2 | kLiteral);
    out += char(length & 0xff);
    out += char(length >> 8);
  }
  out += bytes;
}

void append_copy(std::string& out, size_t offset, size_t length) {
  while (length > 0) {
    // The rest must be at least as long as the shortest copy.
    const size_t now = length > kCopyBytesMax && length < kCopyBytesMax + kCopyBytesMin
                           ? kCopyBytesMax - kCopyBytesMin
                           : std::min(length, kCopyBytesMax);
    out += char((now - 1) << 2 | kCopy2);
    out += char(offset & 0xff);
    out += char(offset >> 8);
    length -= now;
  }
}

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

// Finds repeated bytes with a table of the last position of each hash of four bytes.
void compress_fragment(std::string& out, std::string_view bytes) {
  std::array<uint16_t, 1 << kHashBits> last{};
  size_t literal = 0, at = 0;
  while (at + kCopyBytesMin <= bytes.size()) {
    const uint32_t word = word_at(bytes, at);
    uint16_t& slot = last[(word * 0x1e35a7bdU) >> (32 - kHashBits)];
    const size_t candidate = slot;
    slot = uint16_t(at);
    if (candidate >= at || word_at(bytes, candidate) != word) {
      ++at;
      continue;
    }
    size_t length = kCopyBytesMin;
    while (at + length < bytes.size() && bytes[candidate + length] == bytes[at + length]) ++length;
    append_literal(out, bytes.substr(literal, at - literal));
    append_copy(out, at - candidate, length);
    at += length;
    literal = at;
  }
  append_literal(out, bytes.substr(literal));
}

Error malformed(const char* what) {
  return invalid(std::string("malformed Snappy block: ") + what);
}

// Reads a little-endian number of `count` bytes.
std::optional<size_t> take_number(std::string_view& block, size_t count) {
  if (block.size() < count) return std::nullopt;
  size_t number = 0;
  for (size_t i = 0; i < count; ++i) number |= size_t(uint8_t(block[i])) << (8 * i);
  block.remove_prefix(count);
  return number;
}

struct Element {
  Tag tag = kLiteral;
  size_t length = 0;
  size_t offset = 0;  // the distance of a copy from its source
};

// Reads the head of the next element, without the bytes of a literal.
std::optional<Element> take_element(std::string_view& block) {
  const auto tag = uint8_t(block.front());
  block.remove_prefix(1);
  Element element;
  element.tag = Tag(tag & 3);
  element.length = size_t(tag >> 2) + 1;
  if (element.tag == kLiteral) {
    if (element.length <= kShortLiteralMax) return element;
    const auto length = take_number(block, element.length - kShortLiteralMax);
    if (!length) return std::nullopt;
    element.length = *length + 1;
    return element;
  }
  if (element.tag == kCopy1) element.length = size_t(tag >> 2 & 7) + kCopyBytesMin;
  const auto offset = take_number(block, element.tag == kCopy1 ? 1 : element.tag == kCopy2 ? 2 : 4);
  if (!offset) return std::nullopt;
  element.offset = *offset;
  if (element.tag == kCopy1) element.offset |= size_t(tag >> 5) << 8;
  return element;
}

}  // namespace

std::string snappy_compress(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() / 2 + 16);
  append_varint(out, bytes.size());
  for (size_t at = 0; at < bytes.size(); at += kFragmentBytes)
    compress_fragment(out, bytes.substr(at, kFragmentBytes));
  return out;
}

Result<std::string> snappy_decompress(std::string_view block, size_t bytes_max) {
  const auto length = take_varint(block);
  if (!length || *length > UINT32_MAX) return malformed("invalid uncompressed length");
  if (*length > bytes_max)
    return exhausted("a Snappy block of " + std::to_string(*length) + " bytes is larger than " +
                     std::to_string(bytes_max));
  std::string out;
  // A 3-byte copy yields 64 bytes, less than 22 bytes per input byte; a header that claims more is
  // malformed.
  if (*length > block.size() * (kCopyBytesMax / 3 + 1))
    return malformed("the uncompressed length in its header is impossible for its size");
  out.reserve(size_t(*length));
  while (!block.empty()) {
    const auto element = take_element(block);
    if (!element) return malformed("it is truncated");
    if (element->length > *length - out.size())
      return malformed("it yields more bytes than its header says");
    if (element->tag == kLiteral) {
      if (block.size() < element->length) return malformed("it is truncated");
      out += block.substr(0, element->length);
      block.remove_prefix(element->length);
      continue;
    }
    if (element->offset == 0 || element->offset > out.size())
      return malformed("a copy element refers to bytes before the beginning of the output");
    // A copy may overlap its own output, so it is made byte by byte.
    for (size_t i = 0; i < element->length; ++i) out += out[out.size() - element->offset];
  }
  if (out.size() != *length) return malformed("it yields fewer bytes than its header says");
  return out;
}

}  // namespace trainyard::remote_write

#include "agent/output/lines.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::agent {
namespace {

// Returns the end of the line. Two searches for one byte each are far faster than one for either.
size_t line_end(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  return std::min(bytes.substr(0, end).find('\r'), end);
}

// Returns the position at which to cut a text of more than bytes_max: before a character that would
// cross it.
size_t boundary(std::string_view text, size_t bytes_max) {
  size_t end = bytes_max;
  while (end > 0 && bytes_max - end < 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return bytes_max - end < 4 && end > 0 ? end : bytes_max;
}

void store(std::string_view raw, std::vector<std::string>& lines) {
  if (raw.empty()) return;
  // Replacing can make a text longer, so it is cut afterwards.
  std::string replaced;
  if (!is_utf8(raw)) replaced = to_utf8(raw);
  std::string_view rest = replaced.empty() ? raw : std::string_view(replaced);
  while (rest.size() > kLineBytesMax) {
    const size_t end = boundary(rest, kLineBytesMax);
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  lines.emplace_back(rest);
}

}  // namespace

void LineSplitter::add(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const size_t end = line_end(bytes);
    const bool ends = end < bytes.size();
    if (ends && partial_.empty()) {
      store(bytes.substr(0, end), lines);
    } else {
      partial_ += bytes.substr(0, end);
      if (ends) flush(lines);
    }
    bytes.remove_prefix(end + (ends ? 1 : 0));
    while (partial_.size() > kLineBytesMax) {
      const size_t cut = boundary(partial_, kLineBytesMax);
      store(std::string_view(partial_).substr(0, cut), lines);
      partial_.erase(0, cut);
    }
  }
}

void LineSplitter::flush(std::vector<std::string>& lines) {
  store(partial_, lines);
  partial_.clear();
}

}  // namespace trainyard::agent

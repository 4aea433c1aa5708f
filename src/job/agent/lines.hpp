// Bytes of a user's process -> lines of its log, as they are stored.
//
// A line ends at '\n' or '\r' (progress bars redraw with it; "\r\n" ends one line); empty lines are left out,
// as CloudWatch does. A line longer than kLineBytesMax is cut into several, at a character's boundary. Bytes
// that are not UTF-8 are replaced. Tabs stay tabs (metric_matcher.hpp says how the regexes that expect "#011"
// still match).
//
// Threads: confined to one. Errors: none. Memory: less than twice kLineBytesMax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// CloudWatch takes 256 KiB an event, of which it counts 26 bytes as its own.
inline constexpr size_t kLineBytesMax = (256 << 10) - 26;

class LineSplitter {
 public:
  // Appends the lines that these bytes complete.
  void add(std::string_view bytes, std::vector<std::string>& lines);
  // Appends what is there of an unfinished line: after a second without more bytes, and at the end.
  void flush(std::vector<std::string>& lines);
  bool pending() const { return !partial_.empty(); }

 private:
  std::string partial_;
};

}  // namespace trainyard::agent

// Splits the output of a user's process into log lines, in their stored form.
//
// A line ends at '\n' or '\r' (progress bars redraw with it; "\r\n" ends one line); empty lines are
// left out, as CloudWatch does. A line longer than kLineBytesMax is cut into several, at a
// character's boundary. Bytes that are not UTF-8 are replaced. Tabs stay tabs (metric_matcher.hpp
// describes how regexes for "#011" still match).
//
// Threads: confined to one. Errors: none. Memory: less than twice kLineBytesMax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// CloudWatch accepts 256 KiB for an event, including 26 bytes of its own.
inline constexpr size_t kLineBytesMax = (256 << 10) - 26;

class LineSplitter {
 public:
  // Appends the lines that these bytes complete.
  void add(std::string_view bytes, std::vector<std::string>& lines);
  // Appends an incomplete line: after a second without more bytes, and at the end.
  void flush(std::vector<std::string>& lines);
  bool pending() const { return !partial_.empty(); }

 private:
  std::string partial_;
};

}  // namespace trainyard::agent

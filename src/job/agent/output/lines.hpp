// Splits the output of a user's process into log lines, in their stored form.
//
// A line ends at '\n', '\r' (progress bars redraw with it) or "\r\n". Empty lines are left out, as
// CloudWatch does. A line longer than kLineBytesMax is split between two characters. Bytes that are
// not UTF-8 are replaced. Tabs stay tabs (metric_matcher.hpp describes how regexes for "#011" still
// match).
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
  // Appends the incomplete line, if there is one. Called after a second without more bytes, and at
  // the end.
  void flush(std::vector<std::string>& lines);
  bool pending() const { return !partial_.empty(); }

 private:
  std::string partial_;
};

}  // namespace trainyard::agent

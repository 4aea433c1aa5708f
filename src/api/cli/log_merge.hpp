// LogMerge merges the lines of many streams by time. A line is ready when every other stream has a
// later line, or has been read to its end.
//
// It holds at most a page of lines of each stream.
//
// Threads: confined to one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cli/layout.hpp"

namespace trainyard::cli {

struct LogLine {
  int64_t at_milliseconds = 0;
  std::string host;  // "algo-1"; "digits:7" for a child of an array, "digits#1" for a node
  std::string text;
};

class LogMerge {
 public:
  // Marks a stream that must be read: it is new, or has grown since it was read to its end.
  void mark_unread(const std::string& stream);
  // Adds lines of the stream, ordered by time. `at_end`: the stream has no further lines now.
  void feed(const std::string& stream, std::vector<LogLine> lines, bool at_end);
  // Removes a stream that no longer grows. Requires: all its lines were taken.
  void forget(const std::string& stream) { sources_.erase(stream); }
  // Returns the streams that must be read before further lines become ready.
  std::vector<std::string> unread_streams() const;
  // Removes and returns the lines that are ready, ordered by time.
  std::vector<LogLine> take_ready();

 private:
  struct Source {
    std::deque<LogLine> lines;
    bool at_end = false;
  };
  std::map<std::string, Source> sources_;
};

// Returns "algo-1" for "<job>/algo-1-1763631900", and other names unchanged.
std::string host_of_stream(const std::string& stream);

// Formats "algo-1 | text", with the host in its colour. `widest` is the width of the widest host
// name.
std::string log_line(const OutputStyle& style, const LogLine& line, int widest);

}  // namespace trainyard::cli

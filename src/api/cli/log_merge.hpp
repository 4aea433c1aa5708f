// LogMerge merges the lines of many hosts by time. A line can be taken when every other stream has
// a later line, or has been read to its end.
//
// It holds only lines that were fed and not yet taken: at most a page of each stream.
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
  void wake(const std::string& stream);
  // Adds lines of the stream, ordered by time. `at_end`: it has no further lines now.
  void feed(const std::string& stream, std::vector<LogLine> lines, bool at_end);
  // Leaves out a stream that grows no more. Requires: its lines were taken.
  void forget(const std::string& stream) { sources_.erase(stream); }
  // Returns the streams that must be read before further lines can be taken.
  std::vector<std::string> hungry() const;
  std::vector<LogLine> take();

 private:
  struct Source {
    std::deque<LogLine> lines;
    bool at_end = false;
  };
  std::map<std::string, Source> sources_;
};

// Returns "algo-1" for "<job>/algo-1-1763631900", and a name of another form unchanged.
std::string host_of_stream(const std::string& stream);

// Formats "algo-1 | text", with the host in its colour. `widest` is the width of the widest host
// name.
std::string log_line(const Looks& looks, const LogLine& line, int widest);

}  // namespace trainyard::cli

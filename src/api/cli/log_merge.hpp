// LogMerge merges the lines of many hosts by time: a line is passed on once every other stream either has a
// later one or has been read to its end.
//
// Holds at most the lines that were fed and not taken: a page of each stream.
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
  std::string host;  // "algo-1"
  std::string text;
};

class LogMerge {
 public:
  // Marks a stream that must be read, or has grown since it was read to its end.
  void wake(const std::string& stream);
  // Adds lines of the stream, by time. `at_end`: it has no more now.
  void feed(const std::string& stream, std::vector<LogLine> lines, bool at_end);
  // The streams that must be read before more can be taken.
  std::vector<std::string> hungry() const;
  std::vector<LogLine> take();

 private:
  struct Source {
    std::deque<LogLine> lines;
    bool at_end = false;
  };
  std::map<std::string, Source> sources_;
};

// "<job>/algo-1-1763631900" -> "algo-1"; the whole name when it is of another form.
std::string host_of_stream(const std::string& stream);

// "algo-1 | text", the host in its colour. `widest`: of all host names.
std::string log_line(const Looks& looks, const LogLine& line, int widest);

}  // namespace trainyard::cli

// Lines of many hosts, in the order of their times, as far as that can be known: a line is given out once every other
// stream either has a later one at hand or has been read to its end.
//
// Holds at most what was fed and not taken: a page of each stream.
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
  // A stream that is to be read, or has more than when it was read to its end.
  void wake(const std::string& stream);
  // What was read of it, by time. `at_end`: there is no more now.
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

// LogReader reads log streams from the API and merges their lines by time. It remembers its
// positions, so that each line is read once.
//
// The number of streams is not limited: it holds at most a page of lines of each.
//
// Threads: confined to one. Errors: the client's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/log_merge.hpp"
#include "client/client.hpp"

namespace trainyard::cli {

struct LogSource {
  std::string group, stream;
  std::string label;  // before each line: "algo-1", "digits:7"
};

using LinesTaker = std::function<Result<void>(const std::vector<LogLine>&)>;

class LogReader {
 public:
  // `since`: reads no earlier lines.
  LogReader(client::Client& client, std::optional<Instant> since)
      : client_(client), since_(since) {}

  // Marks a stream that is read by the next drain(): it is new, or may have grown.
  void wake(const LogSource& source);
  // Calls `each` with all new lines of the marked streams, a page of each stream at a time.
  Result<void> drain(const LinesTaker& each);
  // Leaves out a stream that grows no more. Requires: drain() has returned since it was marked.
  void forget(const LogSource& source);
  // The width of the widest label so far.
  int widest() const { return widest_; }

 private:
  struct Position {
    LogSource source;
    std::string token;  // of the next page; "": the first
  };
  Result<void> read(const std::string& key, Position& place);

  client::Client& client_;
  const std::optional<Instant> since_;
  LogMerge merge_;
  std::map<std::string, Position> places_;
  int widest_ = 0;
};

}  // namespace trainyard::cli

// LogReader reads log streams from the API and merges their lines by time. It remembers its
// positions, so that each line is read once.
//
// It holds at most a page of lines of each stream, and the number of streams is not limited.
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

using LineSink = std::function<Result<void>(const std::vector<LogLine>&)>;

class LogReader {
 public:
  // `since`: reads no earlier lines.
  LogReader(client::Client& client, std::optional<Instant> since)
      : client_(client), since_(since) {}

  // Marks a stream for the next drain(): it is new, or may have grown.
  void mark_unread(const LogSource& source);
  // Calls `each` with all new lines of the marked streams, a page of each stream at a time.
  Result<void> drain(const LineSink& each);
  // Removes a stream that no longer grows. Requires: drain() has returned since it was marked.
  void forget(const LogSource& source);
  // Returns the width of the widest label so far.
  int widest() const { return widest_; }

 private:
  struct Position {
    LogSource source;
    std::string token;  // of the next page; "" = the first
  };
  Result<void> read(const std::string& key, Position& position);

  client::Client& client_;
  const std::optional<Instant> since_;
  LogMerge merge_;
  std::map<std::string, Position> positions_;
  int widest_ = 0;
};

}  // namespace trainyard::cli

// LogFollower reads a job's log streams from the API, and merges them. It remembers its positions,
// so that each round reads only new lines. A stream is read only if its summary shows that it has
// grown.
//
// The number of hosts is not limited.
//
// Threads: confined to one. Errors: the client's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "cli/log_merge.hpp"
#include "client/client.hpp"

namespace trainyard::cli {

struct LogChoice {
  std::string job;
  std::string host;  // "algo-2"; "": all
  std::optional<Instant> since;
};

class LogFollower {
 public:
  LogFollower(client::Client& client, LogChoice choice)
      : client_(client), choice_(std::move(choice)) {}

  // Calls `each` with the new lines, with at most a page of lines per stream at a time.
  Result<void> round(const std::function<Result<void>(const std::vector<LogLine>&)>& each);
  // The width of the widest host name so far.
  int widest() const { return widest_; }

 private:
  struct Mark {
    int64_t stored_bytes = -1;
    int64_t last_ingestion = -1;
    auto operator<=>(const Mark&) const = default;
  };

  Result<void> look();
  Result<void> read(const std::string& stream);

  client::Client& client_;
  const LogChoice choice_;
  LogMerge merge_;
  std::map<std::string, Mark> marks_;
  std::map<std::string, std::string> tokens_;
  int widest_ = 0;
};

}  // namespace trainyard::cli

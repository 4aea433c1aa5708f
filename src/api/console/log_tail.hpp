// LogTail follows a job's log: the last lines of each host, and then each new line, merged by
// time.
//
// It holds a position for each stream and no lines, so a slow reader costs no memory: unread lines
// stay where they are stored.
//
// Threads: confined to one. Errors: those of observe::Logs, except for streams that do not exist
// yet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"
#include "observe/logs.hpp"

namespace trainyard::api::console {

struct TailLine {
  std::string host;  // "algo-2"; for an earlier attempt "algo-2 (1)"
  Instant at;
  std::string text;
};

// TailRange is the part of a stream that a round has read. Readers continue at both ends with
// GetLogEvents.
struct TailRange {
  std::string host;  // as in TailLine
  std::string group, stream;
  uint64_t begin = 0, end = 0;  // positions in the stream
};

class LogTail {
 public:
  static constexpr size_t kFirstLines = 500;        // of each stream, at the beginning
  static constexpr size_t kRoundLines = 2'000;      // of all streams, in one round
  static constexpr size_t kRoundBytes = 512 << 10;  // of each stream, in one round
  static constexpr size_t kStreamsMax = 256;        // hosts of one page; the first ones
  static constexpr size_t kAttemptsMax = 3;         // the last ones

  // `may_read`: returns whether the reader may read a stream; called in each round.
  using MayRead = std::function<bool(const std::string& group, const std::string& stream)>;
  LogTail(observe::Logs& logs, MayRead may_read) : logs_(logs), may_read_(std::move(may_read)) {}

  // Returns the next lines of the job's streams. Fewer than kRoundLines lines are all that exist
  // now.
  Result<std::vector<TailLine>> round(const domain::Job& job);
  // Returns the streams that had lines in the last round, or were read for the first time.
  const std::vector<TailRange>& ranges() const { return ranges_; }
  // Returns whether the last round left out a stream that the reader may not read.
  bool denied() const { return denied_; }

 private:
  Result<void> read(const observe::StreamKey& key, const std::string& host,
                    std::vector<TailLine>& lines);

  observe::Logs& logs_;
  const MayRead may_read_;
  std::map<observe::StreamKey, uint64_t> positions_;
  std::vector<TailRange> ranges_;
  bool denied_ = false;
};

}  // namespace trainyard::api::console

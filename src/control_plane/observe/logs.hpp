// Logs at rest: groups of streams of timed lines, per region. Append is durable when it returns.
//
// Threads: callable from anywhere. Errors: not_found (group or stream), conflict (exists), exhausted (disk
// full), invalid (names, tokens), corrupt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::observe {

struct LogEvent {
  Instant at;
  Instant ingested;  // given to append as 1970: the time of the append
  std::string message;
};

struct LogStreamInfo {
  std::string name;
  Instant created;
  std::optional<Instant> first_event;
  std::optional<Instant> last_event;
  std::optional<Instant> last_ingestion;
  uint64_t stored_bytes = 0;  // on disk, with the records' headers
};

struct LogGroupInfo {
  std::string name;
  Instant created;
  uint64_t stored_bytes = 0;
};

// Positions are opaque to callers: they come from a page and go into the next question.
struct ReadQuery {
  std::optional<Instant> from;  // inclusive
  std::optional<Instant> to;    // exclusive
  std::optional<uint64_t> position;
  bool forward = true;  // false: the page that ends at position (or at the end)
  size_t events_max = 10'000;
  size_t bytes_max = 1 << 20;
};

struct LogPage {
  std::vector<LogEvent> events;  // in order of storage, also when read backwards
  uint64_t begin = 0;            // position of the first event
  uint64_t end = 0;              // position after the last: where a follower goes on
};

struct FilterQuery {
  std::vector<std::string> streams;  // empty: all
  std::string stream_prefix;
  std::string pattern;  // CloudWatch filter pattern; "" matches all
  std::optional<Instant> from, to;
  std::string token;  // "" at first
  size_t events_max = 10'000;
};

struct FilteredEvent {
  std::string stream;
  LogEvent event;
  std::string id;
};

struct FilterPage {
  std::vector<FilteredEvent> events;  // ordered by time over the streams
  std::string next_token;             // "" at the end
};

// One reference to a stream: region, group, name.
struct StreamKey {
  std::string region;
  std::string group;
  std::string stream;
  auto operator<=>(const StreamKey&) const = default;
};

class Logs {
 public:
  virtual ~Logs() = default;
  virtual Result<void> create_group(const std::string& region, const std::string& group) = 0;
  virtual Result<void> create_stream(const StreamKey& key) = 0;
  // Makes group and stream when they are not there (the platform's own streams).
  virtual Result<void> ensure_stream(const StreamKey& key) = 0;
  // Durable when it returns. `batch`, when not 0, numbers the batches of one writer from 1: one that was
  // appended before is not appended again (an agent repeats what was not acknowledged).
  virtual Result<void> append(const StreamKey& key, const std::vector<LogEvent>& events,
                              uint64_t batch = 0) = 0;
  // Of its events on disk, with the records' headers.
  virtual Result<uint64_t> stored_bytes(const StreamKey& key) = 0;
  // The number of the last appended batch; 0 when there is none.
  virtual Result<uint64_t> last_batch(const StreamKey& key) = 0;
  virtual Result<LogPage> read(const StreamKey& key, const ReadQuery& query) = 0;
  virtual Result<FilterPage> filter(const std::string& region, const std::string& group,
                                    const FilterQuery& query) = 0;
  virtual Result<std::vector<LogStreamInfo>> streams(const std::string& region, const std::string& group,
                                                     const std::string& prefix) = 0;  // by name
  virtual Result<std::vector<LogGroupInfo>> groups(const std::string& region, const std::string& prefix) = 0;
  // Removes what is older than the retention of the settings; nothing when there is none. Called now and
  // then.
  virtual Result<void> retire(Instant now) = 0;
};

struct LogSettings {
  // Events and streams whose last event is older are removed. None: kept forever, as on AWS.
  std::optional<Duration> retention;
  // Asked before each append of events; its error is the append's (base/disk_reserve.hpp).
  CheckRoom check_room = no_reserve();
  // A segment is one file: small enough to remove old events in steps, large enough that a gigabyte is 16
  // files.
  uint64_t segment_bytes = 64 << 20;
  // One entry of the sparse index per so many bytes: what a read may have to look through in vain.
  uint64_t block_bytes = 64 << 10;
  // A stream that is not used during this time is dropped from memory.
  Duration idle_time = 10min;
  // Streams held in memory at once (some hundred bytes each, and 40 bytes per block).
  size_t streams_open_max = 4096;
  // What one call of filter looks through before it answers with a token: bounds its time, some tens of
  // milliseconds.
  uint64_t filter_scan_bytes_max = 32 << 20;
};

// Logs below `directory`, which it makes. Format: docs/formats/logs.md.
// Requires: one process at a time (the data directory's lock). Torn tails of a crash are cut off here.
Result<std::unique_ptr<Logs>> open_logs(const std::string& directory, Clock& clock,
                                        const LogSettings& settings = {});

}  // namespace trainyard::observe

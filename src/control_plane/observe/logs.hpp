// Logs stores log events: each region has groups, which have streams of events with times. An
// append is durable when it returns.
//
// Threads: callable from anywhere. Errors: not_found (group or stream), conflict (group or stream
// exists), exhausted (disk full), invalid (names, tokens), corrupt.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::observe {

// The detail of not_found and conflict errors: the kind of resource.
enum class LogResource { group, stream };

struct LogEvent {
  Instant at;
  Instant ingested;  // in append(), Instant{} means the current time
  std::string message;
};

struct LogStreamInfo {
  std::string name;
  Instant created;
  std::optional<Instant> first_event;
  std::optional<Instant> last_event;
  std::optional<Instant> last_ingestion;
  uint64_t stored_bytes = 0;  // on disk, including the headers of records
};

// LogGroupSettings has the settings of a group that clients choose.
struct LogGroupSettings {
  std::optional<int64_t> retention_days;  // nullopt: LogSettings::retention applies
  std::string log_class = "STANDARD";     // a log class of AWS; stored, but without effect
  std::string kms_key_id;                 // stored, but without effect
  std::map<std::string, std::string> tags;
};

struct LogGroupInfo {
  std::string name;
  Instant created;
  uint64_t stored_bytes = 0;
  LogGroupSettings settings = {};
};

// Positions are opaque to callers: a page returns them for the next query.
struct ReadQuery {
  std::optional<Instant> from;  // inclusive
  std::optional<Instant> to;    // exclusive
  std::optional<uint64_t> position;
  bool forward = true;  // false: the page that ends at `position`, or at the end of the stream
  size_t events_max = 10'000;
  size_t bytes_max = 1 << 20;
};

struct LogPage {
  std::vector<LogEvent> events;  // in the order of storage, even when read backwards
  uint64_t begin = 0;            // position of the first event
  uint64_t end = 0;              // position after the last event, where a later read continues
};

struct FilterQuery {
  std::vector<std::string> streams;  // empty: all
  std::string stream_prefix;
  std::string pattern;  // CloudWatch filter pattern; "" matches all
  std::optional<Instant> from, to;
  std::string token;  // next_token of the previous page; "": the first page
  size_t events_max = 10'000;
};

struct FilteredEvent {
  std::string stream;
  LogEvent event;
  std::string id;
  uint64_t position = 0;  // in its stream, for ReadQuery
};

struct FilterPage {
  std::vector<FilteredEvent> events;  // of all streams, ordered by time
  std::string next_token;             // "": this is the last page
};

// Returns whether an event with this message is wanted.
using ChooseMessage = std::function<bool(std::string_view)>;

struct ScanQuery {
  std::optional<Instant> from, to;  // as in ReadQuery
  // Called by the thread that scans, for each event in the time range; nullptr: all are wanted.
  ChooseMessage wanted = nullptr;
};

struct ScanPage {
  std::vector<FilteredEvent> events;  // wanted events of all streams, sorted by time, without ids
  bool ended = false;                 // true: this is the last page
  Instant reached;                    // later pages have no earlier events
  // Sums over all pages so far: the events in the time range, wanted or not; the bytes of their
  // messages; and the bytes that were read from files.
  uint64_t scanned = 0, scanned_bytes = 0, read_bytes = 0;
};

// A LogScan reads the events of a group page by page. Unlike filter(), it keeps data between pages,
// up to LogSettings::scan_held_bytes_max.
//
// Threads: confined to one thread at a time. Lifetime: the logs outlive it.
class LogScan {
 public:
  virtual ~LogScan() = default;
  // Returns the next page. It returns after reading filter_scan_bytes_max at the latest, so a page
  // may be empty although further pages follow. Requires: the previous page did not end the scan.
  virtual Result<ScanPage> next() = 0;
};

// Identifies a stream.
struct StreamKey {
  std::string region;
  std::string group;
  std::string stream;
  auto operator<=>(const StreamKey&) const = default;
};

class LogDefinitions;  // log_definitions.hpp

class Logs {
 public:
  virtual ~Logs() = default;
  virtual Result<void> create_group(const std::string& region, const std::string& group,
                                    const LogGroupSettings& settings = {}) = 0;
  // Returns a group without its stored_bytes. Errors: not_found.
  virtual Result<LogGroupInfo> group(const std::string& region, const std::string& group) = 0;
  // Runs `change` in a transaction. If it returns an error, nothing is changed, and the error is
  // returned.
  using ChangeGroup = std::function<Result<void>(LogGroupSettings&)>;
  virtual Result<void> change_group(const std::string& region, const std::string& group,
                                    const ChangeGroup& change) = 0;
  // Removes the group, its streams with their events, and its definitions.
  virtual Result<void> delete_group(const std::string& region, const std::string& group) = 0;
  virtual Result<void> delete_stream(const StreamKey& key) = 0;
  // Returns the definitions of log groups and regions, such as filters and queries.
  virtual LogDefinitions& definitions() = 0;
  virtual Result<void> create_stream(const StreamKey& key) = 0;
  // Creates the group and the stream if they are missing; for streams of jobs and of the server.
  virtual Result<void> ensure_stream(const StreamKey& key) = 0;
  // Creates all missing groups and streams. An implementation may use one sync for all, so that the
  // start of sixty hosts waits once, not sixty times. The default creates one after another.
  virtual Result<void> ensure_streams(const std::vector<StreamKey>& keys);
  // Appends events, which are durable when it returns. `batch`, if not 0, is the number of the
  // batch, which the stream's agent counts from 1. Agents repeat batches that were not
  // acknowledged; a batch that was already appended is not appended again.
  virtual Result<void> append(const StreamKey& key, const std::vector<LogEvent>& events,
                              uint64_t batch = 0) = 0;
  // Returns the size of a stream's events on disk, including the headers of records.
  virtual Result<uint64_t> stored_bytes(const StreamKey& key) = 0;
  // Returns the number of the last appended batch, or 0.
  virtual Result<uint64_t> last_batch(const StreamKey& key) = 0;
  virtual Result<LogPage> read(const StreamKey& key, const ReadQuery& query) = 0;
  virtual Result<FilterPage> filter(const std::string& region, const std::string& group,
                                    const FilterQuery& query) = 0;
  // Errors: not_found (the group).
  virtual Result<std::unique_ptr<LogScan>> scan(const std::string& region, const std::string& group,
                                                const ScanQuery& query) = 0;
  virtual Result<std::vector<LogStreamInfo>> streams(const std::string& region,
                                                     const std::string& group,
                                                     const std::string& prefix) = 0;  // by name
  virtual Result<std::vector<LogGroupInfo>> groups(const std::string& region,
                                                   const std::string& prefix) = 0;
  // Removes events older than the retention of their group or, if it has none, of the settings.
  // Called periodically. Returns the first error; the other streams are still processed.
  virtual Result<void> retire(Instant now) = 0;
};

inline Result<void> Logs::ensure_streams(const std::vector<StreamKey>& keys) {
  for (const StreamKey& key : keys) TRY(ensure_stream(key));
  return {};
}

// Called after an append, with the events that it has stored. It must return soon.
using EventsAppended = std::function<void(const StreamKey&, const std::vector<LogEvent>&)>;

struct LogSettings {
  EventsAppended appended = nullptr;
  // Older events are removed, and so are streams without newer events. nullopt: all are kept, as on
  // AWS.
  std::optional<Duration> retention;
  // Called before each append of events; its error is returned (base/disk_reserve.hpp).
  CheckDiskSpace check_disk_space = no_reserve();
  // The size of a segment, which is one file. It is small enough to remove old events in steps, and
  // large enough that a gigabyte has only 16 files.
  uint64_t segment_bytes = 64 << 20;
  // Bytes of events per entry of the sparse index. A long append has several entries. A read may
  // scan this number of bytes before its first event.
  uint64_t block_bytes = 64 << 10;
  // The time after which an unused stream is removed from memory.
  Duration idle_time = 10min;
  // Streams in memory at once (a few hundred bytes each, and 48 bytes per block).
  size_t streams_open_max = 4096;
  // The number of bytes after which one call of filter() returns a token. It limits the time of a
  // call to some tens of milliseconds.
  uint64_t filter_scan_bytes_max = 32 << 20;
  // Bytes of events that one scan() or filter() keeps in memory, in addition to one block. It is
  // enough for one block of each of some 500 streams that are written at the same time. With more
  // streams, blocks are read several times.
  uint64_t scan_held_bytes_max = 32 << 20;
};

// Opens the logs in `directory`, which is created if it is missing. Incomplete appends at the ends
// of files, as after a crash, are cut off. Format: docs/formats/logs.md. Requires: one process at a
// time (the lock of the data directory).
Result<std::unique_ptr<Logs>> open_logs(const std::string& directory, Clock& clock,
                                        const LogSettings& settings = {});

}  // namespace trainyard::observe

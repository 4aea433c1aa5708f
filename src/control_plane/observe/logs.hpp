// Logs stores logs: groups of streams of timed events, per region. An append is durable when it
// returns.
//
// Threads: callable from anywhere. Errors: not_found (group or stream), conflict (exists),
// exhausted (disk full), invalid (names, tokens), corrupt.
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

// The detail of not_found and conflict: what does not exist, or exists already.
enum class LogResource { group, stream };

struct LogEvent {
  Instant at;
  Instant ingested;  // in append(), 1970 stands for the current time
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

// LogGroupSettings are what clients may choose for a group.
struct LogGroupSettings {
  std::optional<int64_t> retention_days;  // unset: as LogSettings::retention
  std::string log_class = "STANDARD";     // a log class of AWS, without effect
  std::string kms_key_id;                 // kept without effect
  std::map<std::string, std::string> tags;
};

struct LogGroupInfo {
  std::string name;
  Instant created;
  uint64_t stored_bytes = 0;
  LogGroupSettings settings = {};
};

// Positions are opaque to callers: a page returns them, and the next query takes them.
struct ReadQuery {
  std::optional<Instant> from;  // inclusive
  std::optional<Instant> to;    // exclusive
  std::optional<uint64_t> position;
  bool forward = true;  // false: the page that ends at `position`, or at the end of the stream
  size_t events_max = 10'000;
  size_t bytes_max = 1 << 20;
};

struct LogPage {
  std::vector<LogEvent> events;  // in order of storage, also when read backwards
  uint64_t begin = 0;            // position of the first event
  uint64_t end = 0;              // position after the last event, from which a follower continues
};

struct FilterQuery {
  std::vector<std::string> streams;  // empty: all
  std::string stream_prefix;
  std::string pattern;  // CloudWatch filter pattern; "" matches all
  std::optional<Instant> from, to;
  std::string token;  // of the previous page; "": the first page
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
  std::string next_token;             // "": the last page
};

// Chooses events by their message.
using ChooseMessage = std::function<bool(std::string_view)>;

struct ScanQuery {
  std::optional<Instant> from, to;  // as in ReadQuery
  // Called by the thread that scans, for each event of the time; unset: all are wanted.
  ChooseMessage wanted = nullptr;
};

struct ScanPage {
  std::vector<FilteredEvent> events;  // the wanted ones of all streams, ordered by time; without id
  bool ended = false;                 // no page follows
  Instant reached;                    // the events to come are not earlier
  // These sums over all pages so far count the events of the time, wanted or not, the bytes of
  // their messages, and the bytes that were read for them.
  uint64_t scanned = 0, scanned_bytes = 0, read_bytes = 0;
};

// A LogScan reads the events of a group page by page. Unlike filter(), it keeps what it has read
// between pages, within LogSettings::scan_held_bytes_max.
//
// Threads: confined to one at a time. Lifetime: the logs outlive it.
class LogScan {
 public:
  virtual ~LogScan() = default;
  // Returns after filter_scan_bytes_max at the latest: a page may be empty and not the last one.
  // Requires: the page before did not end the scan.
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
  // Without its stored bytes. Errors: not_found.
  virtual Result<LogGroupInfo> group(const std::string& region, const std::string& group) = 0;
  // Runs `change` in a transaction; its error changes nothing, and is returned.
  using ChangeGroup = std::function<Result<void>(LogGroupSettings&)>;
  virtual Result<void> change_group(const std::string& region, const std::string& group,
                                    const ChangeGroup& change) = 0;
  // Removes the group, its streams with their events, and its definitions.
  virtual Result<void> delete_group(const std::string& region, const std::string& group) = 0;
  virtual Result<void> delete_stream(const StreamKey& key) = 0;
  // Definitions that belong to log groups: filters, queries.
  virtual LogDefinitions& definitions() = 0;
  virtual Result<void> create_stream(const StreamKey& key) = 0;
  // Creates group and stream if they are missing (for the platform's own streams).
  virtual Result<void> ensure_stream(const StreamKey& key) = 0;
  // Creates all missing groups and streams with one sync, where the storage can: an iteration that
  // starts sixty hosts waits once, not sixty times. By default one after another.
  virtual Result<void> ensure_streams(const std::vector<StreamKey>& keys);
  // Durable when it returns. `batch`, if not 0, numbers the batches of one writer from 1. A batch
  // that was appended before is not appended again, since agents repeat batches that were not
  // acknowledged.
  virtual Result<void> append(const StreamKey& key, const std::vector<LogEvent>& events,
                              uint64_t batch = 0) = 0;
  // The size of its events on disk, with the records' headers.
  virtual Result<uint64_t> stored_bytes(const StreamKey& key) = 0;
  // The number of the last appended batch; 0 if there is none.
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
  // Called periodically. Errors: the first one; other streams are retired all the same.
  virtual Result<void> retire(Instant now) = 0;
};

inline Result<void> Logs::ensure_streams(const std::vector<StreamKey>& keys) {
  for (const StreamKey& key : keys) TRY(ensure_stream(key));
  return {};
}

// Called after an append, with events that are stored now and were not before. It must return soon.
using EventsAppended = std::function<void(const StreamKey&, const std::vector<LogEvent>&)>;

struct LogSettings {
  EventsAppended appended = nullptr;
  // Older events are removed, and streams without newer ones. Unset: kept forever, as on AWS.
  std::optional<Duration> retention;
  // Called before each append of events, which returns its error (base/disk_reserve.hpp).
  CheckDiskSpace check_disk_space = no_reserve();
  // Size of a segment, which is one file: small enough to remove old events in steps, large enough
  // that a gigabyte has only 16 files.
  uint64_t segment_bytes = 64 << 20;
  // Bytes per entry of the sparse index, within appends as well. A read may scan as many before its
  // first event.
  uint64_t block_bytes = 64 << 10;
  // Time after which an unused stream is dropped from memory.
  Duration idle_time = 10min;
  // Streams in memory at once (a few hundred bytes each, and 48 bytes per block).
  size_t streams_open_max = 4096;
  // Bytes that one call of filter() scans before it returns a token: limits its time to some tens
  // of milliseconds.
  uint64_t filter_scan_bytes_max = 32 << 20;
  // Bytes of events that one scan() or filter() keeps in memory, besides those of one block: a
  // block of each of some 500 streams that are written at the same time. With more streams, blocks
  // are read several times.
  uint64_t scan_held_bytes_max = 32 << 20;
};

// Opens the logs below `directory`, and creates it if it is missing. Format: docs/formats/logs.md.
// Cuts off tails that a crash tore. Requires: one process at a time (the data directory's lock).
Result<std::unique_ptr<Logs>> open_logs(const std::string& directory, Clock& clock,
                                        const LogSettings& settings = {});

}  // namespace trainyard::observe
